"""Good calls of predictors with guarantees."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from example_registry import array, listed, method

import setwise as sw
from setwise import conformal
from setwise.decisions._risk_control import RiskControl

LOSSES = np.linspace(1.0, 0.0, 4) * np.ones((12, 1))
MAPS = np.random.default_rng(0).integers(0, 65, size=(12, 4)) / 64  # exact in any width
MASKS = np.random.default_rng(1).random((12, 4)) < MAPS
GROUPS = array(*[0, 1] * 6)
CHAIN = sw.fields.Potts([[0, 1], [1, 2], [2, 3]], 0.5)
FIELDS = [sw.fields.Field(np.stack([0 * p, 1 - 2 * p], axis=1)) + CHAIN for p in MAPS]
LISTS = [sw.diverse(field, 2) for field in FIELDS]


def seen(control: RiskControl) -> Any:
    return control.level, control.risk, control.bound, control.certified_levels


def of_masks(masks: list[Any]) -> Any:
    return [(m.inner, m.outer) for m in masks]


def levels(model: Any) -> Any:
    found = []
    for control in model.controls_.values():
        found += list(control.values()) if isinstance(control, dict) else [control]
    return [(control.level, control.n_examples) for control in found]


def parameters(model: Any) -> Any:
    """The answers of a predictor; its parameters are checked with the first call."""
    if isinstance(model, conformal.ConformalLists):
        return levels(model.conformalize(LISTS, MASKS))
    if model.delta is not None:
        model.fit(MAPS, MASKS)
    return levels(model.conformalize(MAPS, MASKS))


listed(
    "conformal.control_risk",
    seen,
    losses=LOSSES,
    alpha=0.5,
    levels=array(0.0, 0.5, 1.0, 2.0),
    delta=0.5,
    order=array(3, 2, 1, 0),
)
listed(
    "conformal.ConformalMasks",
    parameters,
    estimator=None,
    alpha=0.5,
    outer="false_negative_rate",
    inner="false_positive_rate",
    mask="dice",
    delta=0.5,
    nonempty=False,
    ignore=None,
    max_bias=1.0,
    resolution=0.0,
    n_jobs=1,
)
listed(
    "conformal.ConformalLabels",
    parameters,
    estimator=None,
    alpha=0.5,
    risk="precision",
    delta=0.5,
    order="gains",
    nonempty=True,
)
listed(
    "conformal.ConformalLists",
    parameters,
    estimator=None,
    alpha=0.9,
    tau=0.25,
    length=2,
    delta=0.5,
    n_jobs=1,
)


def masks() -> conformal.ConformalMasks:
    return conformal.ConformalMasks(alpha=0.5)


def labels() -> conformal.ConformalLabels:
    return conformal.ConformalLabels(alpha=0.5)


def lists() -> conformal.ConformalLists:
    return conformal.ConformalLists(alpha=0.9, tau=0.25, length=2)


def itself(masks: Any) -> Any:
    return masks


for name, make, X, look in (
    ("ConformalMasks", masks, MAPS, of_masks),
    ("ConformalLabels", labels, MAPS, itself),
    ("ConformalLists", lists, LISTS, itself),
):
    owner = f"conformal.{name}"
    given = X[:3]

    def calibrated(make: Any = make, X: Any = X) -> Any:
        return make().conformalize(X, MASKS)

    def by_group(make: Any = make, X: Any = X) -> Any:
        return make().conformalize(X, MASKS, groups=GROUPS)

    method(f"{owner}.conformalize", make, levels, X=X, y=MASKS, groups=GROUPS)
    method(f"{owner}.predict", make, X=given)
    method(f"{owner}.predict_set", by_group, look, X=given, groups=array(0, 1, 1))
    method(f"{owner}.save", calibrated, path="saved.json")

method(
    "conformal.ConformalMasks.fit",
    lambda: conformal.ConformalMasks(alpha=0.5, mask="dice", delta=0.5),
    lambda model: levels(model.conformalize(MAPS, MASKS)),
    X=MAPS,
    y=MASKS,
)
method(
    "conformal.ConformalLabels.fit",
    lambda: conformal.ConformalLabels(alpha=0.5, risk="precision", delta=0.5),
    lambda model: levels(model.conformalize(MAPS, MASKS)),
    X=MAPS,
    y=MASKS,
)

FILE = Path(tempfile.mkdtemp(), "masks.json")
masks().conformalize(MAPS, MASKS).save(FILE)
listed("conformal.load", levels, path=str(FILE), estimator=None)
method(
    "conformal.MaskSet.overlay",
    lambda: (
        masks()
        .conformalize(MAPS.reshape(12, 2, 2), MASKS.reshape(12, 2, 2))
        .predict_set(MAPS.reshape(12, 2, 2))[0]
    ),
    image=array([0.0, 1.0], [0.5, 0.25]),
    opacity=0.5,
)
