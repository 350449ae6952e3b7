"""What is not long, and all that must be the one or the other."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from public_api import interface

# Linear in what they are given, without a search: NumPy, or one pass of a kernel.
SHORT_METHODS = {
    "__call__",
    "added_to",
    "addition",
    "augment",
    "check",
    "close",
    "complement",
    "contract",
    "copy",
    "decide",
    "decision_function",
    "each",
    "energies",
    "energy",
    "evaluate",
    "expected_loss",
    "extension_scale",
    "extra_repr",
    "forward",
    "from_function",
    "from_labels",
    "from_loss",
    "from_probabilities",
    "from_reliability",
    "from_result",
    "from_surrogate",
    "function_of",
    "gain",
    "gain_of",
    "gains",
    "general_properties",
    "grid",
    "importances",
    "is_increasing",
    "is_submodular",
    "is_supermodular",
    "labeling",
    "map",
    "overlay",
    "parts",
    "piece_of",
    "pieces",
    "place",
    "plot",
    "predict",
    "predict_proba",
    "properties",
    "properties_of",
    "restrict",
    "save",
    "scaled",
    "score",
    "score_boxes",
    "set_capacities",
    "set_function",
    "set_params",
    "set_terminals",
    "shares_of",
    "staged_decision_function",
    "staged_predict",
    "step_negative",
    "step_positive",
    "terms",
    "to_field",
    "value",
    "value_and_gradient",
    "with_unary",
}
SHORT = {
    "app.serve",  # runs until Ctrl-C: uvicorn handles it
    "conformal.ConformalLabels.conformalize",
    "conformal.ConformalLabels.fit",  # of scikit-learn's classifiers
    "conformal.ConformalLabels.predict_set",
    "conformal.load",
    "decisions.control_risk",
    "estimators.ThinnedEnsemble.fit",
    "estimators.StructBoostTracker.as_in_paper",
    "fields.contrast_weights",
    "fields.grid_edges",
    "fields.regions_from_labels",
    "functions.base_vertex",
    "functions.lovasz_extension",
    "images.read",  # files are read and written by kernels of other libraries
    "images.write",
    "inference.EditableCut.certificate",
    "inference.EditableCut.undo",
    "inference.oracle_accuracy",
    "inference.reliability",
    "learning.Executor.sums",
    "learning.tree_sum",
    "losses.get",
    "losses.names",
    "losses.scorer",
    "surrogates.get",
    "surrogates.names",
    "torch.MaskCalibrator.compute",
    "torch.MaskCalibrator.reset",
    "torch.MaskCalibrator.update",
    "torch.SetScore.compute",
    "torch.SetScore.reset",
    "torch.SetScore.update",
}


def public_callables() -> Iterator[str]:
    """Functions, and methods of classes, under the names of their homes.

    Those of ``setwise.dask`` wait for other processes: tests/test_dask_learning.py.
    """
    for name, value in interface():
        if inspect.ismodule(value) or not callable(value) or name.startswith("setwise.dask."):
            continue
        home = f"{value.__module__.split('.')[1]}.{value.__name__}"
        if not inspect.isclass(value):
            yield home
            continue
        for base in value.__mro__:
            if base.__module__.startswith("setwise"):
                for name, member in vars(base).items():
                    plain = inspect.isfunction(member) or isinstance(member, classmethod)
                    if plain and (not name.startswith("_") or name == "__call__"):
                        yield f"{home}.{name}"
