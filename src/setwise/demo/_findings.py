"""What the experiment found, in numbers and in sentences that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from setwise._foundation._arguments import FloatArray
from setwise.demo._digits import SURROGATES, Outcome, Settings

# How far below its own best index a surrogate may fall and still be called near it.
NEAR = 0.05


def mean_and_error(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean over the folds, the first axis, and its standard error."""
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return np.asarray(values.mean(axis=0)), np.asarray(error)


@dataclass(frozen=True)
class Row:
    """One surrogate over all folds: mean and standard error."""

    name: str
    jaccard: tuple[float, float]
    error: tuple[float, float]
    Cs: tuple[float, ...]
    """The C chosen on each fold."""
    relative_gap: float
    """The largest of the final fits."""


@dataclass(frozen=True)
class Findings:
    """A row for each surrogate, and what may be said of them."""

    rows: tuple[Row, ...]
    verdict: str
    """Whether the test indices differ, by Student's t over the folds at 95 %."""
    range_of_C: str
    """Which values of C do."""


def findings(outcomes: list[Outcome], settings: Settings) -> Findings:
    """Tell what came out, whichever surrogate is ahead."""
    of = {name: [one for one in outcomes if one.surrogate == name] for name in SURROGATES}
    rows = tuple(
        Row(
            label,
            _pair(np.array([one.jaccard for one in of[name]])),
            _pair(np.array([one.error for one in of[name]])),
            tuple(one.C for one in of[name]),
            max(one.relative_gap for one in of[name]),
        )
        for name, label in SURROGATES.items()
    )
    first, second = (np.array([one.jaccard for one in of[name]]) for name in SURROGATES)
    return Findings(rows, _verdict(first - second), _range_of_C(of, settings))


def _pair(values: FloatArray) -> tuple[float, float]:
    mean, error = mean_and_error(values)
    return float(mean), float(error)


def _verdict(differences: FloatArray) -> str:
    mean, error = _pair(differences)
    told = f"Lovász hinge minus plain hinge, fold by fold: {mean:+.3f} ± {error:.3f}"
    if abs(mean) <= stdtrit(len(differences) - 1, 0.975) * error:
        return f"{told}: with C tuned for each, these folds show no difference between the two."
    ahead = "Lovász hinge" if mean > 0 else "plain hinge"
    return f"{told}: with C tuned for each, the {ahead} is ahead by more than chance."


def _range_of_C(of: dict[str, list[Outcome]], settings: Settings) -> str:
    """Over which C each surrogate stays near its own best held-out index."""
    spans = []
    for name, label in SURROGATES.items():
        mean = np.mean([one.validation for one in of[name]], axis=0)
        near = [C for C, index in zip(settings.Cs, mean, strict=True) if index >= mean.max() - NEAR]
        spans.append(f"from C = {min(near):g} to {max(near):g} with the {label}")
    return f"The held-out index stays within {NEAR:g} of its best {' and '.join(spans)}."
