"""setwise: learn with the loss you are judged by.

``import setwise`` loads NumPy and SciPy only; each part is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from setwise._foundation._imports import load

if TYPE_CHECKING:
    from setwise import (
        conformal,
        decisions,
        diversities,
        estimators,
        fields,
        functions,
        images,
        inference,
        learning,
        losses,
        plots,
        surrogates,
    )
    from setwise import dask as dask
    from setwise import torch as torch
    from setwise.decisions import decide
    from setwise.estimators import (
        FieldBoost,
        FieldSVM,
        SetClassifier,
        SetClassifierCV,
        SetDecision,
        StructBoostClassifier,
        StructBoostRanker,
        StructBoostTracker,
        thin,
    )
    from setwise.inference import calibrate_temperature, diverse, marginals, sample, solve_map

__version__ = "0.1.0"

__all__ = [
    "FieldBoost",
    "FieldSVM",
    "SetClassifier",
    "SetClassifierCV",
    "SetDecision",
    "StructBoostClassifier",
    "StructBoostRanker",
    "StructBoostTracker",
    "calibrate_temperature",
    "conformal",
    "decide",
    "decisions",
    "diverse",
    "diversities",
    "estimators",
    "fields",
    "functions",
    "images",
    "inference",
    "learning",
    "losses",
    "marginals",
    "plots",
    "sample",
    "solve_map",
    "surrogates",
    "thin",
]

# Parts that need an extra: `from setwise import *` must work without it.
_EXTRAS = ("app", "dask", "torch")

# Names that stand for themselves at the root, and where they live.
_HOMES = {
    "FieldBoost": "estimators",
    "FieldSVM": "estimators",
    "SetClassifier": "estimators",
    "SetClassifierCV": "estimators",
    "SetDecision": "estimators",
    "StructBoostClassifier": "estimators",
    "StructBoostRanker": "estimators",
    "StructBoostTracker": "estimators",
    "calibrate_temperature": "inference",
    "decide": "decisions",
    "diverse": "inference",
    "marginals": "inference",
    "sample": "inference",
    "solve_map": "inference",
    "thin": "estimators",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        found = getattr(load(f"setwise.{_HOMES[name]}"), name)
        globals()[name] = found  # the next access does not come here
        return found
    if name in __all__ or name in _EXTRAS:
        return load(f"setwise.{name}")
    from setwise._foundation._keywords import absent

    raise absent("setwise", name, __dir__())


def __dir__() -> list[str]:
    return [*__all__, *_EXTRAS, "__version__"]
