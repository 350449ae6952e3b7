"""Set losses for PyTorch: autograd, every dtype, CPU and CUDA. NumPy and torch are all it needs."""

try:
    from setwise.torch._decide import MaskDecision, decide
    from setwise.torch._decomposed import DecomposedHingeLoss, decomposed_hinge
    from setwise.torch._lovasz_hinge import LovaszHingeLoss, lovasz_hinge
    from setwise.torch._lovasz_softmax import LovaszSoftmaxLoss, lovasz_softmax
    from setwise.torch._rescaling import (
        MarginRescalingLoss,
        SlackRescalingLoss,
        margin_rescaling,
        slack_rescaling,
    )
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        "setwise.torch needs PyTorch, which is not installed: pip install 'setwise[torch]'"
    ) from error

__all__ = [
    "DecomposedHingeLoss",
    "LovaszHingeLoss",
    "LovaszSoftmaxLoss",
    "MarginRescalingLoss",
    "MaskDecision",
    "SlackRescalingLoss",
    "decide",
    "decomposed_hinge",
    "lovasz_hinge",
    "lovasz_softmax",
    "margin_rescaling",
    "slack_rescaling",
]
