"""Good calls of set functions, losses and surrogates."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from example_registry import array, go_on, listed, method

from setwise import functions, losses, surrogates


def any_of(mask: np.ndarray) -> float:
    return float(mask.any())


def root(sums: Any) -> Any:
    return np.sqrt(sums)


def half_of_both(n: Any, q: Any) -> Any:
    return np.minimum(n + q, 2.0)


POSITIVE = array(True, False, True)
SIZES = functions.Cardinality([0.0, 1.0, 1.5, 1.75])
SET_FUNCTIONS: dict[str, dict[str, Any]] = {
    "Cardinality": {"values": array(0.0, 1.0, 1.5, 1.75)},
    "ConcaveOfModular": {"concave": root, "weights": array(1.0, 4.0, 0.25)},
    "Counts": {"formula": half_of_both, "positive": POSITIVE},
    "Coverage": {
        "sets": [array(0, 1), array(1), array(2, 3)],
        "weights": array(1.0, 2.0, 0.5, 4.0),
    },
    "Cut": {"edges": array([0, 1], [1, 2]), "weights": array(1.0, 0.5), "n": 3, "directed": False},
    "Modular": {"weights": array(1.0, -2.0, 0.5)},
    "Oracle": {
        "function": any_of,
        "n": 3,
        "submodular": True,
        "supermodular": False,
        "increasing": True,
    },
    "Table": {"values": array(0.0, 1.0, 1.0, 2.0, 1.0, 2.0, 2.0, 2.5)},
}


def values_and_gains(function: functions.SetFunction) -> list[np.ndarray]:
    """All there is to see of a set function of a few elements."""
    if function.n > 12:
        return [function.n]
    return [functions.tabulate(function).values, function.gains(np.arange(function.n))]


for name, arguments in SET_FUNCTIONS.items():
    make = functools.partial(getattr(functions, name), **arguments)
    listed(f"functions.{name}", values_and_gains, **arguments)
    owner = f"functions.{name}"
    method(f"{owner}.__call__", make, mask=array([True, False, True], [False, False, True]))
    method(f"{owner}.gains", make, order=array(2, 0))
    method(f"{owner}.restrict", make, values_and_gains, subset=array(2, 0))
    method(f"{owner}.contract", make, values_and_gains, subset=array(True, False, False))
    method(f"{owner}.complement", make, values_and_gains)
method("functions.Counts.grid", lambda: functions.Counts(half_of_both, POSITIVE))

RATIO = functions.Ratio(3)
listed("functions.Ratio", m=3, beta=1.0, part="whole")
for name in ("__call__", "step_negative", "step_positive"):
    method(f"functions.Ratio.{name}", lambda: RATIO, n=array(0.0, 1.0), q=array(2.0, 0.0))
for name in ("is_increasing", "is_submodular", "is_supermodular"):
    method(f"functions.Ratio.{name}", lambda: RATIO, r=2)
method("functions.Ratio.parts", lambda: RATIO)

listed("functions.base_vertex", function=SIZES, w=array(0.5, -1.0, 0.25))
listed("functions.check", function=SIZES, n_trials=50, rng=0)
listed("functions.decompose", function=functions.Table([0.0, 1.0, 1.0, 3.0]))
listed("functions.lovasz_extension", function=SIZES, w=array(0.5, -1.0, 0.25))
listed("functions.maximize", function=SIZES, k=2, method="greedy", time_limit=3600.0, rng=0)
listed(
    "functions.minimize",
    function=SIZES + functions.Modular([-2.0, 0.5, 0.25]),
    tol=1e-6,
    max_iter=100,
    time_limit=3600.0,
    verbose=False,
    callback=go_on,
)
listed("functions.tabulate", values_and_gains, function=SIZES)


# ----------------------------------------------------------------------------- losses, surrogates


def share(k: Any, p: int) -> Any:
    return np.minimum(k / p, 0.5)


def weighted_counts(n: Any, q: Any, m: int, r: int) -> Any:
    return np.minimum(n + 0.5 * q, 2.0)


Y = array([1, 0, 1], [0, 0, 1])
Z = array([1, 1, 1], [0, 1, 0])
SCORES = array([0.5, -0.25, -2.0], [1.5, 0.75, 0.125])
LOSSES: dict[str, dict[str, Any]] = {
    "CardinalityLoss": {"formula": share},
    "ConcaveLoss": {"concave": root, "weights": array(1.0, 4.0, 0.25)},
    "CountsLoss": {"formula": weighted_counts},
    "Dice": {"weights": array(1.0, 2.0, 0.5)},
    "EarlyDetection": {"rate": 1.0, "fraction": 0.5},
    "Exponential": {"alpha": 1.5},
    "FBeta": {"beta": 2.0, "weights": array(1.0, 2.0, 0.5)},
    "FaceTrack": {"kind": 2, "alpha": 1.5},
    "Hamming": {"weights": array(1.0, 2.0, 0.5)},
    "ItemsetLoss": {"counts": array(8.0, 4.0, 1.0)},
    "Jaccard": {"weights": array(1.0, 2.0, 0.5)},
    "SetLoss": {"function": SIZES, "submodular": True, "increasing": True},
    "TruncatedModular": {"limit": 1.5, "weights": array(1.0, 2.0, 0.5)},
}


def on_a_batch(loss: losses.Loss) -> Any:
    return loss(Y, Z), values_and_gains(loss.set_function(Y[0]))


for name, arguments in LOSSES.items():
    make = functools.partial(getattr(losses, name), **arguments)
    listed(f"losses.{name}", on_a_batch, **arguments)
    method(
        f"losses.{name}.__call__",
        make,
        y_true=array(1, 0, 1, 0, 1, 1),
        y_pred=array(1, 1, 1, 0, 1, 0),
        offsets=array(0, 3, 6),
    )
    method(f"losses.{name}.set_function", make, values_and_gains, y=array(1, 0, 1))
method(
    "losses.ItemsetLoss.from_labels",
    lambda: losses.ItemsetLoss,
    on_a_batch,
    Y=array([1, 1, 0], [1, 0, 1], [1, 1, 1]),
    min_support=0.25,
    max_size=2,
)
listed("losses.get", repr, loss="jaccard")
listed("losses.names")
listed("losses.scorer", repr, loss="jaccard", sets="rows", pos_label="spam")
listed("surrogates.get", repr, surrogate="margin", loss="jaccard")
listed("surrogates.names")

SURROGATES: dict[str, dict[str, Any]] = {
    "DecomposedHinge": {"loss": "dice"},
    "LovaszHinge": {"loss": "jaccard", "case": "auto"},
    "MarginRescaling": {"loss": "jaccard", "scale": 1.0, "maximizer": "auto"},
    "SlackRescaling": {"loss": "early_detection", "maximizer": "auto"},
}


def on_scores(surrogate: surrogates.Surrogate) -> Any:
    return surrogate.value_and_gradient(Y, SCORES)


for name, arguments in SURROGATES.items():
    make = functools.partial(getattr(surrogates, name), **arguments)
    listed(f"surrogates.{name}", on_scores, **arguments)
    ragged = {"y": array(1, 0, 1, 0, 1, 1), "scores": SCORES.ravel(), "offsets": array(0, 3, 6)}
    method(f"surrogates.{name}.__call__", make, **ragged)
    method(f"surrogates.{name}.value_and_gradient", make, **ragged)
    method(f"surrogates.{name}.properties", make, y=array(1, 0, 1))
method(
    "surrogates.MarginRescaling.extension_scale",
    lambda: surrogates.MarginRescaling("dice"),
    y=array(1, 0, 1),
)
