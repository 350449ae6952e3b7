"""Every surrogate beside its definition by brute force, and the laws that several tests hold it to.

A surrogate is listed once, in SURROGATES: ``each_pair`` runs a law over it and every loss of LOSSES
that it takes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import reference
from loss_registry import LOSSES

from setwise import losses
from setwise.functions import decompose
from setwise.surrogates import (
    DecomposedHinge,
    LovaszHinge,
    MarginRescaling,
    SlackRescaling,
    Surrogate,
)

# Values below a hundred from some dozens of operations.
TOLERANCE = 1e-10


def lovasz(values, margins, part=None):
    case = 1 if reference.is_increasing(values) else 2
    return reference.lovasz_hinge(values, margins, case)


def margin_extension(values, margins, part=None):
    """The scale is 2 / (largest gain); a loss that nowhere rises has any scale, and its maximum."""
    gain = max(reference.largest_gain(values), 0.0)
    sums = margins @ reference.all_masks(margins.shape[1]).T
    return (values - gain * sums).max(axis=1)


def decomposed(values, margins, part):
    f, g = part
    return lovasz(f, margins) + reference.slack_rescaling(g, margins)


@dataclass(frozen=True)
class Kind:
    make: Callable[[losses.Loss], Surrogate]
    definition: Callable[..., np.ndarray]
    """Of the table of the loss, the margins g y (k, p) and, for B_D, the tables of f and g."""
    needs: str = "nothing"


SURROGATES = {
    "lovasz": Kind(LovaszHinge, lovasz, "submodular"),
    "lovasz case 1": Kind(
        lambda loss: LovaszHinge(loss, case=1),
        lambda values, margins, part: reference.lovasz_hinge(values, margins, 1),
        "increasing submodular",
    ),
    "lovasz case 2": Kind(
        lambda loss: LovaszHinge(loss, case=2),
        lambda values, margins, part: reference.lovasz_hinge(values, margins, 2),
        "submodular",
    ),
    "margin": Kind(
        MarginRescaling,
        lambda values, margins, part: reference.margin_rescaling(values, margins),
    ),
    "margin scaled": Kind(
        lambda loss: MarginRescaling(loss, scale=0.3),
        lambda values, margins, part: reference.margin_rescaling(values, margins, 0.3),
    ),
    "margin extension": Kind(
        lambda loss: MarginRescaling(loss, scale="extension"), margin_extension, "increasing"
    ),
    "slack": Kind(
        SlackRescaling,
        lambda values, margins, part: reference.slack_rescaling(values, margins),
        "non-negative",
    ),
    "decomposed": Kind(DecomposedHinge, decomposed),
}


@cache
def truths(loss_name: str) -> list[np.ndarray]:
    """Every ground truth of up to three elements, and some of four."""
    everything = list(LOSSES[loss_name].truths())
    return [y for k, y in enumerate(everything) if len(y) < 4 or k % 5 == 0]


@cache
def facts(loss_name: str) -> dict[str, bool]:
    """What the definition of a loss is for every truth of the sizes it is tested on."""
    tables = [LOSSES[loss_name].table(positive) for positive in LOSSES[loss_name].truths()]
    return {
        "nothing": True,
        "submodular": all(map(reference.is_submodular, tables)),
        "increasing": all(map(reference.is_increasing, tables)),
        "non-negative": all(table.min() >= -1e-12 for table in tables),
    }


def suits(loss_name: str, kind_name: str) -> bool:
    return all(facts(loss_name)[need] for need in SURROGATES[kind_name].needs.split())


PAIRS = [(loss, kind) for loss in LOSSES for kind in SURROGATES if suits(loss, kind)]
each_pair = pytest.mark.parametrize(
    ("loss_name", "kind_name"), PAIRS, ids=[f"{kind}: {loss}" for loss, kind in PAIRS]
)


def score_rows(positive: np.ndarray) -> np.ndarray:
    """Ties, zeros, the corners of the unit cube of s = 1 - g y, scores near it and far from it."""
    p = len(positive)
    rng = np.random.default_rng(p)
    corners = 1.0 - reference.all_masks(p)
    rows = [
        corners * np.where(positive, 1.0, -1.0),
        rng.normal(scale=1.5, size=(10, p)),
        rng.integers(-2, 3, size=(8, p)) / 2,
        rng.normal(scale=30.0, size=(4, p)),
        rng.random((4, p)) * np.where(positive, 1.0, -1.0),  # inside the cube
    ]
    return np.concatenate(rows)


@dataclass(frozen=True)
class Evaluation:
    """A surrogate of one truth at many scores, beside its definition."""

    positive: np.ndarray
    scores: np.ndarray
    values: np.ndarray
    gradients: np.ndarray
    defined: np.ndarray
    losses: np.ndarray
    """The loss of every set of mistakes."""

    @property
    def corners(self) -> slice:
        return slice(0, len(self.losses))

    def loss_of_signs(self, zero_is_positive: bool) -> np.ndarray:
        predicted = self.scores >= 0 if zero_is_positive else self.scores > 0
        mistakes = predicted != self.positive
        return self.losses[mistakes @ np.left_shift(1, np.arange(len(self.positive)))]


@cache
def surrogate_of(loss_name: str, kind_name: str) -> Surrogate:
    return SURROGATES[kind_name].make(LOSSES[loss_name].loss)


@cache
def evaluations(loss_name: str, kind_name: str) -> list[Evaluation]:
    listed, surrogate = LOSSES[loss_name], surrogate_of(loss_name, kind_name)
    return [
        evaluation_of(surrogate, kind_name, listed.table(positive), positive)
        for positive in truths(loss_name)
    ]


def evaluation_of(surrogate, kind_name, table, positive, scores=None):
    scores = score_rows(positive) if scores is None else scores
    margins = scores * np.where(positive, 1.0, -1.0)
    part = None
    if kind_name == "decomposed":
        function = surrogate.loss.set_function(positive)
        part = [reference.all_values(half) for half in decompose(function)]
    defined = SURROGATES[kind_name].definition(table, margins, part)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the submodular part of")  # has a test of its own
        values, gradients = surrogate.value_and_gradient(
            np.tile(positive, (len(scores), 1)), scores
        )
    return Evaluation(positive, scores, values, gradients, defined, table)


def assert_subgradients(one):
    steps = one.scores[None, :, :] - one.scores[:, None, :]
    lines = one.values[:, None] + np.einsum("gi,ghi->gh", one.gradients, steps)
    # Lines over distances of a hundred and slopes of ten.
    assert np.all(one.values[None, :] >= lines - 1e-9)
