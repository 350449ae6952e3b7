"""The Lovász hinge with Jaccard, value and gradient of one set, against the usual torch losses.

Targets at a million elements: 4 times faster on random scores, 15 times with fewer than 1 % of
violators. The peers run forward and backward on one CPU thread, on tensors that share our arrays.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from kornia.losses import lovasz_hinge_loss

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import (
    alternate,
    arguments,
    as_ratio,
    as_seconds,
    how_many,
    in_turn,
    ratio,
    report,
    require_close,
    verdict,
)
from benchmarks.shared.scores import draw
from benchmarks.shared.smp import smp_lovasz_loss

CASES = [("random", 10**4), ("random", 10**5), ("random", 10**6), ("separated", 10**6)]
TARGETS = {("random", 10**6): 4.0, ("separated", 10**6): 15.0}


def of_torch(
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    y: np.ndarray,
    scores: np.ndarray,
) -> Callable[[], tuple[float, np.ndarray]]:
    """Return tensors of one image with one channel.

    Labels are bytes, because float32 and int64 were not clearly faster.
    """
    x = torch.from_numpy(scores).view(1, 1, 100, -1).requires_grad_()
    target = torch.from_numpy(y.view(np.uint8)).view(1, 100, -1)

    def value_and_gradient() -> tuple[float, np.ndarray]:
        x.grad = None
        value = loss(x, target)
        value.backward()
        return value.item(), x.grad.numpy().reshape(-1)

    return value_and_gradient


def gains_of_errors(y: np.ndarray, scores: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Return -y gradient, summed over elements of equal error 1 - g y, by increasing error.

    Each order of equal errors has its own subgradient, but all of these have the same sum. The
    errors are computed as the peers compute them, because their rounding makes more errors equal.
    """
    signs = np.where(y, 1, -1).astype(scores.dtype)
    order = np.argsort(1 - scores * signs, kind="stable")
    errors = (1 - scores * signs)[order]
    begins = np.flatnonzero(np.concatenate([[True], errors[1:] > errors[:-1]]))
    return np.add.reduceat((-signs * gradient).astype(np.float64)[order], begins)


def agreement(y: np.ndarray, scores: np.ndarray, smp: torch.nn.Module) -> dict[str, float]:
    """Return the relative differences of the answers, and exit if they should agree and do not.

    The peers' gradients are differences of Jaccard values near 1, which have few correct digits in
    float32 at a million elements. So the gradients must agree with kornia's in float64, and the
    error of float32 is reported.
    """
    hinge = sw.surrogates.LovaszHinge("jaccard")
    value, gradient = hinge.value_and_gradient(y, scores)
    double = scores.astype(np.float64)
    value_64, gradient_64 = hinge.value_and_gradient(y, double)
    reference, reference_gradient = of_torch(lovasz_hinge_loss, y, double)()
    reference_gains = gains_of_errors(y, double, reference_gradient)

    require_close("value, float64", value_64, reference, 1e-9)
    require_close("value, float32", value, reference, 1e-6)
    apart = {}
    for name, ours in (("setwise float64", gradient_64), ("setwise", gradient)):
        gains = gains_of_errors(y, double, ours)
        apart[name] = require_close(f"gradient, {name}", gains, reference_gains, 1e-6)
    reference_gains = gains_of_errors(y, scores, gradient_64)
    for name, loss in (("smp", smp), ("kornia", lovasz_hinge_loss)):
        theirs, theirs_gradient = of_torch(loss, y, scores)()
        require_close(f"value, {name}", theirs, value, 1e-4)
        gains = gains_of_errors(y, scores, theirs_gradient)
        apart[name] = require_close(f"gradient, {name}", gains, reference_gains, 0.5)
    return apart


def main() -> None:
    args = arguments(__doc__)
    torch.set_num_threads(1)
    smp = smp_lovasz_loss()
    hinge = sw.surrogates.LovaszHinge("jaccard")
    head = ["scores", "p", "violators", "setwise", "smp / setwise", "kornia / setwise"]
    table = [[*head, "float64: smp / setwise", "gradient off: setwise, smp, kornia"]]
    data, notes = [], []
    for kind, p in CASES:
        inputs = [draw(kind, p, seed) for seed in range(how_many(p))]
        y, scores = inputs[0]
        violators = float(np.mean(np.where(y, scores, -scores) < 1))
        apart = agreement(y, scores, smp)
        doubles = [(y, x.astype(np.float64)) for y, x in inputs]
        contenders = {
            "setwise": in_turn(hinge.value_and_gradient, inputs),
            "setwise float64": in_turn(hinge.value_and_gradient, doubles),
        }
        for name, loss in (("smp", smp), ("kornia", lovasz_hinge_loss)):
            calls = [(of_torch(loss, y, x),) for y, x in inputs]
            contenders[name] = in_turn(lambda call: call(), calls)
        seconds = alternate(contenders, repeats=5 if args.quick else 41, clock=time.process_time)
        ratios = {
            f"{peer} / {ours}": ratio(seconds[peer], seconds[ours])
            for peer in ("smp", "kornia")
            for ours in ("setwise", "setwise float64")
        }
        table.append(
            [
                kind,
                f"{p:,}",
                f"{100 * violators:.1f} %",
                as_seconds(float(np.median(seconds["setwise"]))),
                as_ratio(ratios["smp / setwise"]),
                as_ratio(ratios["kornia / setwise"]),
                as_ratio(ratios["smp / setwise float64"]),
                ", ".join(f"{apart[name]:.0e}" for name in ("setwise", "smp", "kornia")),
            ]
        )
        data.append(
            {
                "scores": kind,
                "p": p,
                "violators": violators,
                "seconds": {name: float(np.median(times)) for name, times in seconds.items()},
                "ratios": ratios,
                "gradient_off": apart,
            }
        )
        if (kind, p) in TARGETS:
            least = min(ratios[f"{peer} / setwise"]["median"] for peer in ("smp", "kornia"))
            notes.append(f"{kind}, p = {p:,}: {verdict(least, TARGETS[kind, p])}")
    notes.append(
        "Processor time of one thread. Gradient off: distance from the gradient in float64, in the "
        "1-norm, relative. The peers subtract Jaccard values near 1, of which float32 keeps few "
        "digits."
    )
    report("lovasz_hinge", table, data, notes=notes, quick=args.quick)


if __name__ == "__main__":
    main()
