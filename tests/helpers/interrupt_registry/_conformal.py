"""Long calls of predictors with guarantees: the paths and lists of many fields."""

from __future__ import annotations

from typing import Any

import numpy as np

from interrupt_registry._calls import Call, long
from interrupt_registry._inference import grid_field
from setwise import conformal


def examples(size: int) -> tuple[list[Any], list[np.ndarray]]:
    fields = [grid_field(size, 2)] * 6
    return fields, [field.unary[:, 1] < field.unary[:, 0] for field in fields]


def masks() -> conformal.ConformalMasks:
    return conformal.ConformalMasks(alpha=0.5, resolution=0.0)


def lists() -> conformal.ConformalLists:
    return conformal.ConformalLists(alpha=0.9, tau=0.1)


def levels(model: Any) -> np.ndarray:
    return np.array([control.level for control in model.controls_.values()])


@long("conformal.ConformalMasks.fit")
def fit_of_masks(size: int) -> Call:
    model = masks().set_params(mask="dice", delta=0.5)
    return lambda: np.array(model.fit(*examples(size))._order)


@long("conformal.ConformalMasks.conformalize")
def conformalize_of_masks(size: int) -> Call:
    return lambda: levels(masks().conformalize(*examples(size)))


@long("conformal.ConformalMasks.predict_set")
def sets_of_masks(size: int) -> Call:
    model = masks().conformalize(*examples(1))
    return lambda: np.array([found.outer for found in model.predict_set(examples(size)[0])])


@long("conformal.ConformalLists.conformalize")
def conformalize_of_lists(size: int) -> Call:
    return lambda: levels(lists().conformalize(*examples(size)))


@long("conformal.ConformalLists.predict_set")
def sets_of_lists(size: int) -> Call:
    model = lists().conformalize(*examples(1))
    return lambda: np.concatenate(model.predict_set(examples(size)[0]))
