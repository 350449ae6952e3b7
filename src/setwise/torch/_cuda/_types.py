"""What the kernels call the types of tensors."""

from __future__ import annotations

import torch

SCORES = {torch.float32: "float", torch.float16: "Half", torch.bfloat16: "Bfloat16"}
LABELS = {
    torch.bool: "unsigned char",
    torch.uint8: "unsigned char",
    torch.int8: "signed char",
    torch.int16: "short",
    torch.int32: "int",
    torch.int64: "long long",
    torch.float32: "float",
    torch.float64: "double",
}
