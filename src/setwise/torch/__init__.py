"""Set losses for PyTorch: autograd, every dtype, CPU and CUDA. NumPy and torch are all it needs."""

try:
    import torch as _torch
except ImportError as error:
    raise ImportError(
        "setwise.torch needs PyTorch, which is not installed: pip install 'setwise[torch]'"
    ) from error
del _torch

from setwise.torch._lovasz_hinge import LovaszHingeLoss, lovasz_hinge

__all__ = ["LovaszHingeLoss", "lovasz_hinge"]
