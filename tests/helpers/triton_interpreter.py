"""The Triton kernels of the exact path in Triton's interpreter, on the CPU.

A script of its own, because Triton looks for TRITON_INTERPRET when it is imported.
"""

import sys
import warnings

import torch

import setwise as sw
from setwise.torch._cuda import _triton

t = sw.torch


def hinge(generator, rows, n, labels, ignore):
    x = 2 * torch.randn(rows, n, generator=generator)
    y = (torch.rand(rows, n, generator=generator) < 0.4).to(labels)
    y[-1] = 0
    if ignore is not None:
        y[torch.rand(rows, n, generator=generator) < 0.2] = ignore
    z = x.double().requires_grad_()
    options = {"per_image": True, "ignore_index": ignore, "reduction": "none"}
    expected = t.LovaszHingeLoss(**options)(z, y)
    expected.sum().backward()
    void = float("nan") if ignore is None else float(ignore)
    values, gradient = _triton.hinge_of_sort(x, y, void, 1.0, 1.0, 0.0)
    torch.testing.assert_close(values.double(), expected.detach(), rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(gradient.double(), z.grad, rtol=1e-5, atol=1e-9)


def softmax(generator, images, classes, pixels, per_image, present, from_logits, last):
    x = torch.randn(images, pixels, classes, generator=generator)
    if not from_logits:
        x = x.softmax(2)
    x = x.permute(0, 2, 1) if last else x.permute(0, 2, 1).contiguous()
    y = torch.randint(0, max(classes - 1, 1), (images, pixels), generator=generator)
    y[torch.rand(images, pixels, generator=generator) < 0.2] = 255
    weight = torch.rand(classes, generator=generator, dtype=torch.float64)
    z = x.double().requires_grad_()
    expected = t.LovaszSoftmaxLoss(
        classes="present" if present else "all",
        per_image=per_image,
        ignore_index=255,
        from_logits=from_logits,
        weight=weight,
    )(z, y)
    expected.backward()
    total, gradient = _triton.softmax_of_sort(
        x, y, 255, weight, present, per_image, 1.0, 1.0, 0.0, from_logits
    )
    assert gradient.stride() == x.stride()
    torch.testing.assert_close(total.double(), expected.detach(), rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(gradient.double(), z.grad, rtol=1e-4, atol=1e-8)


def main():
    # The interpreter computes both sides of a choice, as the hardware does; NumPy warns of it.
    warnings.filterwarnings("ignore", category=RuntimeWarning, module="triton")
    generator = torch.Generator().manual_seed(0)
    for n in (1, 7, 3000):
        hinge(generator, 2, n, torch.bool, None)
        hinge(generator, 3, n, torch.int64, 255)
    for per_image in (False, True):
        for present in (False, True):
            for from_logits in (False, True):
                softmax(generator, 2, 3, 40, per_image, present, from_logits, last=present)
    softmax(generator, 1, 5, 300, False, True, True, last=False)
    print("ok")


if __name__ == "__main__":
    sys.exit(main())
