"""Set losses and layers of random fields for PyTorch: autograd, every dtype, CPU and CUDA.

One rule names the weights. In a loss of sets, ``weight`` holds class weights: the loss is their
weighted mean, so multiplying all weights by a constant changes nothing. In a layer or a loss of
fields, ``weight`` and ``region_weight`` are the weights of pairs and regions in the energy. A
number in [0, 1] that mixes two losses is a ``share``. Greek names such as ``alpha`` and ``beta``
are the parameters of a formula, as its paper names them.
"""

from typing import Any

try:
    from setwise.torch._cross_entropy import WithCrossEntropy
    from setwise.torch._decide import decide
    from setwise.torch._decomposed import DecomposedHingeLoss, decomposed_hinge
    from setwise.torch._fields._field_hinge import FieldHingeLoss
    from setwise.torch._fields._field_likelihood import FieldLikelihoodLoss
    from setwise.torch._fields._field_map import FieldMAP
    from setwise.torch._fields._field_marginals import FieldMarginals
    from setwise.torch._instances import InstanceLoss
    from setwise.torch._lovasz_hinge import LovaszHingeLoss, lovasz_hinge
    from setwise.torch._lovasz_sigmoid import LovaszSigmoidLoss, lovasz_sigmoid
    from setwise.torch._lovasz_softmax import LovaszSoftmaxLoss, lovasz_softmax
    from setwise.torch._mask_calibrator import MaskCalibrator
    from setwise.torch._overlaps import (
        DiceSemimetricLoss,
        JaccardMetricLoss,
        SoftDiceLoss,
        TverskyLoss,
    )
    from setwise.torch._rescaling import (
        MarginRescalingLoss,
        SlackRescalingLoss,
        margin_rescaling,
        slack_rescaling,
    )
    from setwise.torch._set_score import SetScore
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        "setwise.torch needs PyTorch, which is not installed: pip install 'setwise[torch]'"
    ) from error

__all__ = [
    "DecomposedHingeLoss",
    "DiceSemimetricLoss",
    "FieldHingeLoss",
    "FieldLikelihoodLoss",
    "FieldMAP",
    "FieldMarginals",
    "InstanceLoss",
    "JaccardMetricLoss",
    "LovaszHingeLoss",
    "LovaszSigmoidLoss",
    "LovaszSoftmaxLoss",
    "MarginRescalingLoss",
    "MaskCalibrator",
    "SetScore",
    "SlackRescalingLoss",
    "SoftDiceLoss",
    "TverskyLoss",
    "WithCrossEntropy",
    "decide",
    "decomposed_hinge",
    "lovasz_hinge",
    "lovasz_sigmoid",
    "lovasz_softmax",
    "margin_rescaling",
    "slack_rescaling",
]


def __getattr__(name: str) -> Any:
    from setwise._foundation._keywords import absent

    raise absent("setwise.torch", name, __all__)
