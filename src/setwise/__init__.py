"""setwise: learn with the loss you are evaluated by.

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
    from setwise.decisions._budgets import decide_at_k
    from setwise.decisions._decide import decide
    from setwise.estimators._boosting._struct_boost_classifier import StructBoostClassifier
    from setwise.estimators._boosting._struct_boost_ranker import StructBoostRanker
    from setwise.estimators._fields._field_boost import FieldBoost
    from setwise.estimators._fields._field_svm import FieldSVM
    from setwise.estimators._sets._set_classifier import SetClassifier
    from setwise.estimators._sets._set_classifier_cv import SetClassifierCV
    from setwise.estimators._sets._set_decision import SetDecision
    from setwise.estimators._thinning._thin import thin
    from setwise.estimators._tracking._struct_boost_tracker import StructBoostTracker
    from setwise.inference._calibration._calibrate_temperature import calibrate_temperature
    from setwise.inference._diverse._diverse import diverse
    from setwise.inference._map._solve_map import solve_map
    from setwise.inference._marginals._marginals import marginals
    from setwise.inference._sampling._sample import sample

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
    "decide_at_k",
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

# Parts that need an extra. They are not in `__all__`, because `from setwise import *` must work
# without the extras.
_EXTRAS = ("app", "dask", "torch")

# The public names of this module that are not modules, with the modules that define them.
_HOMES = {
    "FieldBoost": "estimators._fields._field_boost",
    "FieldSVM": "estimators._fields._field_svm",
    "SetClassifier": "estimators._sets._set_classifier",
    "SetClassifierCV": "estimators._sets._set_classifier_cv",
    "SetDecision": "estimators._sets._set_decision",
    "StructBoostClassifier": "estimators._boosting._struct_boost_classifier",
    "StructBoostRanker": "estimators._boosting._struct_boost_ranker",
    "StructBoostTracker": "estimators._tracking._struct_boost_tracker",
    "calibrate_temperature": "inference._calibration._calibrate_temperature",
    "decide": "decisions._decide",
    "decide_at_k": "decisions._budgets",
    "diverse": "inference._diverse._diverse",
    "marginals": "inference._marginals._marginals",
    "sample": "inference._sampling._sample",
    "solve_map": "inference._map._solve_map",
    "thin": "estimators._thinning._thin",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        found = getattr(load(f"setwise.{_HOMES[name]}"), name)
        globals()[name] = found  # later accesses find the attribute without calling this function
        return found
    if name in __all__ or name in _EXTRAS:
        return load(f"setwise.{name}")
    from setwise._foundation._keywords import absent

    raise absent("setwise", name, __dir__())


def __dir__() -> list[str]:
    return [*__all__, *_EXTRAS, "__version__"]
