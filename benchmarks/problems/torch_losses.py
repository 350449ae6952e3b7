"""The losses of ``setwise.torch`` on the CPU, forward and backward."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

import setwise as sw
from benchmarks.problems import Problem, attempt, named
from benchmarks.shared.scores import draw

torch.set_num_threads(1)

# Each surrogate as a class and as a function, with the losses it is used with.
TWINS = {
    "LovaszHingeLoss": ("lovasz_hinge", ("jaccard", "hamming", "exponential", "f_beta")),
    "DecomposedHingeLoss": ("decomposed_hinge", ("dice", "jaccard", "face_track_1", "f_beta")),
    "MarginRescalingLoss": ("margin_rescaling", ("jaccard", "dice", "hamming", "exponential")),
    "SlackRescalingLoss": ("slack_rescaling", ("jaccard", "dice", "hamming", "exponential")),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "": {},
    " images": {"per_image": True, "reduction": "sum"},
    " classes": {"per_class": True, "weight": [1.0, 2.0, 3.0], "ignore_index": 255},
    " both": {"per_image": True, "per_class": True, "reduction": "none"},
}


def both_ways(criterion: Any, x: torch.Tensor, y: torch.Tensor, *args: Any, **options: Any) -> Any:
    """Return values and the gradient of their sum."""
    leaf = x.detach().clone().requires_grad_()
    value = criterion(leaf, y, *args, **options)
    value.sum().backward()
    return [value, leaf.grad]


def scores(dtype: torch.dtype, pixels: int = 40) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return scores (2, 3, pixels), targets for sets with void pixels, and classes."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 3, pixels, generator=generator, dtype=torch.float64).to(dtype)
    y = (torch.rand(2, 3, pixels, generator=generator) < 0.4).to(torch.uint8)
    classes = torch.randint(0, 3, (2, pixels), generator=generator)
    void = torch.rand(2, pixels, generator=generator) < 0.1
    return x, y.masked_fill(void[:, None], 255), classes.masked_fill(void, 255)


def wide() -> Iterator[Problem]:
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        x, y, classes = scores(dtype)
        for name, (function, losses) in TWINS.items():
            for loss in losses:
                for kind, options in OPTIONS.items():
                    at = f"{dtype}/{name} {loss}{kind}"
                    target = y if "ignore_index" in options else y.clamp(max=1)
                    methods = (None, 8192) if name == "LovaszHingeLoss" else (None,)
                    for buckets in methods:
                        more = options | ({"buckets": buckets} if buckets else {})
                        yield f"{at} {buckets}", partial(of_class, name, loss, more, x, target)
                    yield (
                        f"{at} function",
                        partial(
                            attempt,
                            both_ways,
                            getattr(sw.torch, function),
                            x,
                            target,
                            loss,
                            **options,
                        ),
                    )
        for loss in ("jaccard", "dice", "hamming"):
            for kind, options in (
                ("", {}),
                (" all", {"classes": "all", "per_image": True}),
                (" chosen", {"classes": [0, 2], "reduction": "none"}),
                (" weighted", {"weight": [1.0, 2.0, 3.0]}),
            ):
                for buckets in (None, 8192):
                    more = {"buckets": buckets, "ignore_index": 255} | options
                    yield (
                        f"{dtype}/LovaszSoftmaxLoss {loss}{kind} {buckets}",
                        partial(of_class, "LovaszSoftmaxLoss", loss, more, x, classes),
                    )
            yield (
                f"{dtype}/lovasz_softmax {loss}",
                partial(
                    attempt, both_ways, sw.torch.lovasz_softmax, x, classes, loss, ignore_index=255
                ),
            )
    x, _, classes = scores(torch.float64)
    for name in ("SoftDiceLoss", "TverskyLoss", "JaccardMetricLoss", "DiceSemimetricLoss"):
        criterion = named(sw.torch, name)(ignore_index=255, per_image=True, average="classes")
        yield name, partial(attempt, both_ways, criterion, x, classes)
    soft = torch.softmax(x.flip(0), 1)
    for criterion in (
        sw.torch.LovaszSoftmaxLoss(),
        sw.torch.LovaszSigmoidLoss(buckets=8192),
        sw.torch.WithCrossEntropy(sw.torch.LovaszSoftmaxLoss()),
    ):
        yield f"soft labels {criterion!r}", partial(attempt, both_ways, criterion, x, soft)
    yield (
        "lovasz_sigmoid dice",
        partial(attempt, both_ways, sw.torch.lovasz_sigmoid, x, soft > 0.3, "dice"),
    )
    yield (
        "InstanceLoss",
        partial(
            attempt, both_ways, sw.torch.InstanceLoss(ignore_index=255), x[:, 0], classes.long()
        ),
    )
    score = sw.torch.SetScore("dice", n_classes=x.shape[1], ignore_index=255)
    yield "SetScore", lambda: score(x, classes).numpy()
    yield "MaskCalibrator", guaranteed_masks
    x, y, _ = scores(torch.float64)
    for loss in (
        sw.losses.Jaccard() + sw.losses.Hamming(),
        sw.losses.Exponential(0.4),
        sw.losses.FBeta(0.5),
        2.0 * sw.losses.Dice(),
    ):
        for name in TWINS:
            yield f"{name} {loss!r}", partial(of_class, name, loss, {}, x, y.clamp(max=1))
    yield (
        "margin 0.5",
        partial(of_class, "MarginRescalingLoss", "jaccard", {"scale": 0.5}, x, y.clamp(max=1)),
    )
    yield (
        "few buckets",
        partial(
            of_class,
            "LovaszHingeLoss",
            "jaccard",
            {"buckets": 16},
            x,
            y.clamp(max=1),
        ),
    )

    # FieldMarginals, FieldMAP and the losses return records: FieldPosterior, FieldLabels and
    # FieldLoss.
    images, labels = x[:, :, :36].reshape(2, 3, 6, 6), classes[:, :36].reshape(2, 6, 6).clamp(max=2)
    layer = sw.torch.FieldMarginals(0.7)
    yield "FieldMarginals", partial(both_ways, lambda x, y: layer(x), images, labels)
    yield "FieldMAP", lambda: sw.torch.FieldMAP(0.7)(images)
    for name in ("FieldLikelihoodLoss", "FieldHingeLoss"):
        yield name, partial(both_ways, named(sw.torch, name)(0.7), images, labels)


def guaranteed_masks() -> Any:
    """Return the fields of ``MaskBounds`` for twenty images, calibrated on forty others."""
    x, y, _ = scores(torch.float64, 60)
    calibrator = sw.torch.MaskCalibrator(alpha=0.2)
    calibrator.update(x.view(-1, 6)[:40], y.clamp(max=1).view(-1, 6)[:40])
    calibrator.compute()
    return [mask.numpy() for mask in calibrator(x.view(-1, 6)[40:])]


def of_class(name: str, loss: Any, options: dict[str, Any], x: Any, y: Any) -> Any:
    criterion = attempt(named(sw.torch, name), loss, **options)
    return criterion if isinstance(criterion, str) else attempt(both_ways, criterion, x, y)


def timed() -> Iterator[Problem]:
    for kind in ("random", "separated"):
        labels, numbers = draw(kind, 1_000_000, 0)
        x = torch.from_numpy(numbers).view(1, 1, 1000, 1000)
        y = torch.from_numpy(labels).view(1, 1, 1000, 1000)
        for buckets in (None, 8192):
            criterion = sw.torch.LovaszHingeLoss(buckets=buckets)
            yield f"torch_cpu {kind} {buckets}", partial(both_ways, criterion, x, y)
        yield (
            f"torch_cpu {kind} bfloat16",
            partial(both_ways, sw.torch.LovaszHingeLoss(buckets=8192), x.bfloat16(), y),
        )
        for name in ("DecomposedHingeLoss", "MarginRescalingLoss", "SlackRescalingLoss"):
            few, their = x[..., :300, :], y[..., :300, :]
            yield f"{name} {kind}", partial(both_ways, named(sw.torch, name)(), few, their)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 21, 250, 400, generator=generator)
    y = torch.randint(0, 21, (1, 250, 400), generator=generator)
    for buckets in (None, 8192):
        criterion = sw.torch.LovaszSoftmaxLoss(buckets=buckets)
        yield f"torch_cpu classes {buckets}", partial(both_ways, criterion, x, y)
    tiny = [(x[:, :3, :4, k : k + 5], y[:, :4, k : k + 5] % 3) for k in range(150)]
    criterion = sw.torch.LovaszSoftmaxLoss()
    yield "calls of 20 pixels", lambda: [both_ways(criterion, a, b) for a, b in tiny]
