"""The Lovász losses on a GPU, forward and backward, against the usual code.

``plain`` is a rewritten version of that code: a loop over classes, a sort, differences of Jaccard
values in float32. ``torch.sort`` alone and a plain copy of the scores show the limits of the
device.

There are two times: on the device, with the queue kept full so that the host never delays it; and
the wall time of a training loop that does nothing else, including the host's work.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import arguments, nothing_to_measure, report

REPEATS = 15
# The goals, largest times forward and backward: in milliseconds, and for the exact method in
# multiples of the time of the sort.
GOALS = {"hinge 1,000,000": 0.025, "hinge 10,000,000": 0.06, "hinge 100,000,000": 0.45}
GOALS |= {"softmax 1 x 21 x 512 x 512": 0.25, "softmax 8 x 19 x 512 x 1024": 0.75}
SORTS = 1.5
MEMORY = 3452  # MiB at 100,000,000 pixels, the exact method
HOST = 0.2  # ms of the host in the forward pass, for losses of few pixels


t = sw.torch
OF_CLASSES = (t.LovaszSoftmaxLoss, t.SoftDiceLoss, t.JaccardMetricLoss, t.WithCrossEntropy)
FEW_PIXELS = (
    t.LovaszHingeLoss(buckets=8192),
    t.LovaszSoftmaxLoss("dice", buckets=8192),
    t.LovaszSigmoidLoss(buckets=8192),
    t.SoftDiceLoss(),
    t.JaccardMetricLoss(per_image=True),
    t.WithCrossEntropy(t.SoftDiceLoss()),
)


def on_device(call: Callable[[], object], repeats: int) -> float:
    """Return the median milliseconds between two events, queued behind a long kernel."""
    for _ in range(3):
        call()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(4_000_000)  # 2 ms, in which the host can call ahead
        first.record()
        call()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last))
    return sorted(times)[len(times) // 2]


def in_a_loop(call: Callable[[], object], repeats: int) -> float:
    """Return the milliseconds of wall time per call, one after the other."""
    call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeats * 1e3


def peak(loss: Callable[..., torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> float:
    """Return the peak memory in MiB: input, labels, gradient and temporary arrays."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated() - x.nbytes - y.nbytes
    torch.cuda.reset_peak_memory_stats()
    step(loss, x, y)()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def along(errors: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Compute the extension of Jaccard the usual way: sort, cumulative sums, differences."""
    errors, order = torch.sort(errors, descending=True)
    truth = truth[order]
    all_positives = truth.sum()
    union = all_positives + (1.0 - truth).cumsum(0)
    jaccard = 1.0 - (all_positives - truth.cumsum(0)) / union
    return torch.dot(errors, torch.diff(jaccard, prepend=jaccard.new_zeros(1)))


def plain_hinge(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    truth = target.view(-1).to(scores.dtype)
    return along(torch.relu(1.0 - scores.view(-1) * (2.0 * truth - 1.0)), truth)


def plain_softmax(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    classes = logits.shape[1]
    p = torch.softmax(logits, 1).transpose(0, 1).reshape(classes, -1)
    labels, values = target.view(-1), []
    for c in range(classes):
        truth = (labels == c).to(p.dtype)
        if truth.sum() > 0:
            values.append(along((truth - p[c]).abs(), truth))
    return torch.stack(values).mean()


def step(
    loss: Callable[..., torch.Tensor], x: torch.Tensor, y: torch.Tensor
) -> Callable[[], tuple[torch.Tensor, torch.Tensor | None]]:
    """Run forward and backward."""
    x = x.detach().requires_grad_()

    def forward_and_backward() -> tuple[torch.Tensor, torch.Tensor | None]:
        x.grad = None
        value = loss(x, y)
        value.backward()
        return value.detach(), x.grad

    return forward_and_backward


def hinge_case(n: int, separated: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw 30 % positives; "separated" leaves 2 % of violators."""
    torch.manual_seed(0)
    y = torch.rand(1, n, device="cuda") < 0.3
    x = torch.randn(1, n, device="cuda")
    if separated:
        x = torch.where(y, 3.05 + x, x - 3.05)
    return x, y


def softmax_case(images: int, classes: int, *size: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    y = torch.randint(0, classes, (images, *size), device="cuda")
    return torch.randn(images, classes, *size, device="cuda"), y


def cases(quick: bool) -> Iterator[tuple[str, str, torch.Tensor, torch.Tensor]]:
    sizes = (10**6, 10**7) if quick else (10**6, 10**7, 10**8)
    for n in sizes:
        yield f"hinge {n:,}", "random", *hinge_case(n, False)
    yield f"hinge {n:,}", "2 % violate", *hinge_case(n, True)
    x, y = hinge_case(n, False)
    yield f"hinge {n:,}, bfloat16", "random", x.bfloat16(), y
    shapes = [(1, 21, 512, 512), (8, 19, 512, 1024)]
    for shape in shapes[:1] if quick else shapes:
        yield f"softmax {' x '.join(map(str, shape))}", "random", *softmax_case(*shape)


def main() -> None:
    args = arguments(__doc__)
    if not torch.cuda.is_available():
        nothing_to_measure("no CUDA device: nothing to measure")
    repeats = 5 if args.quick else REPEATS
    head = ["loss", "scores", "method", "device", "loop", "peak MiB", "value off", "gradient off"]
    table, data, notes = [head], [], []
    for name, kind, x, y in cases(args.quick):
        hinge = name.startswith("hinge")
        ours = sw.torch.LovaszHingeLoss if hinge else sw.torch.LovaszSoftmaxLoss
        plain = plain_hinge if hinge else plain_softmax
        half = x.dtype == torch.bfloat16
        contenders = {"exact": ours(), "bucket": ours(buckets=8192), "plain": plain}
        reference, slopes = step(ours(), x.double(), y)()
        sets = x.view(1, -1) if hinge else x.transpose(0, 1).reshape(x.shape[1], -1)
        bare = {"sort": lambda s=sets: torch.sort(s, dim=1), "copy": lambda s=x: s.clone()}
        milliseconds = {key: on_device(call, repeats) for key, call in bare.items()}
        for method, loss in contenders.items():
            call = step(loss, x, y)
            value, gradient = call()
            apart = {
                "value": abs(float(value) - float(reference)) / abs(float(reference)),
                "gradient": float(
                    (gradient - slopes).abs().sum(dtype=torch.float64) / slopes.abs().sum()
                ),
            }
            del value, gradient
            if method != "plain":  # the error of the usual code is reported, without a goal
                tolerance = 1e-6 if method == "exact" or hinge else 1e-5
                if apart["value"] > tolerance or apart["gradient"] > 2e-2:
                    sys.exit(f"{name}, {method}: too far from float64: {apart}")
            row = {
                "loss": name,
                "scores": kind,
                "method": method,
                "device_ms": on_device(call, repeats),
                "loop_ms": in_a_loop(call, repeats),
                "peak_mib": peak(loss, x, y),
                "off": apart,
            }
            data.append(row)
            table.append(
                [
                    name,
                    kind,
                    method,
                    f"{row['device_ms']:.3f}",
                    f"{row['loop_ms']:.3f}",
                    f"{row['peak_mib']:.0f}",
                    f"{apart['value']:.0e}",
                    f"{apart['gradient']:.0e}",
                ]
            )
            if kind == "random" and not half and method == "bucket":
                notes.append(f"{name}, bucket: " + limit(row["device_ms"], GOALS[name], "ms"))
            if kind == "random" and not half and method == "exact":
                ratio = row["device_ms"] / milliseconds["sort"]
                notes.append(f"{name}, exact: " + limit(ratio, SORTS, "times the sort"))
                if name == "hinge 100,000,000":
                    notes.append(f"{name}, exact: " + limit(row["peak_mib"], MEMORY, "MiB"))
        for key, spent in milliseconds.items():
            data.append({"loss": name, "scores": kind, "method": key, "device_ms": spent})
            table.append([name, kind, f"torch.{key}", f"{spent:.3f}", "", "", "", ""])
        half_of = step(lambda scores, target, f=contenders["bucket"]: 0.5 * f(scores, target), x, y)
        row = {"device_ms": on_device(half_of, repeats), "loop_ms": in_a_loop(half_of, repeats)}
        data.append({"loss": name, "scores": kind, "method": "half of bucket", **row})
        table.append([name, kind, "0.5 bucket", *(f"{ms:.3f}" for ms in row.values())])
        table[-1] += [""] * (len(head) - len(table[-1]))
        call = step(lambda scores, _: scores.sum(), x, y)
        row = {"device_ms": on_device(call, repeats), "loop_ms": in_a_loop(call, repeats)}
        data.append({"loss": name, "scores": kind, "method": "sum and its backward", **row})
        table.append([name, kind, "sum().backward()", *(f"{ms:.3f}" for ms in row.values())])
        table[-1] += [""] * (len(head) - len(table[-1]))
        del slopes
    for criterion in FEW_PIXELS:
        x, y = softmax_case(2, 19, 64, 64)
        if not isinstance(criterion, OF_CLASSES):
            y = x > 1
        call = step(criterion, x, y)
        for _ in range(20):
            call()
        row = {
            "loop_ms": in_a_loop(call, 20 * repeats),
            "forward_ms": in_a_loop(lambda f=criterion, a=x, b=y: f(a, b), 20 * repeats),
        }
        name = type(criterion).__name__
        data.append({"loss": name, "scores": "2 x 19 x 64 x 64", "method": "host", **row})
        table.append([name, "2 x 19 x 64 x 64", "host", "", f"{row['loop_ms']:.3f}", "", "", ""])
        notes.append(f"{name}, host, forwards: " + limit(row["forward_ms"], HOST, "ms"))
    notes.append(
        "0.5 bucket: a slope other than 1 is one more pass over the gradient, in its place."
    )
    notes.append(
        "Off: distance from float64, relative; of the gradient in the 1-norm. plain loses it to "
        "float32. In a loop over small inputs one waits for the host: see sum().backward(), "
        "which does nothing else."
    )
    measured = (
        f"Milliseconds, forward and backward, medians of {repeats} on the device, "
        f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"
    )
    report("torch_cuda", table, data, notes=notes, measured=measured, quick=args.quick)


def limit(reached: float, goal: float, unit: str) -> str:
    """Return whether a figure is within its goal."""
    return f"{reached:.3g} {unit}, goal {goal:g}: {'met' if reached <= goal else 'NOT met'}"


if __name__ == "__main__":
    main()
