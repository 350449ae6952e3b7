"""The arrays and numbers of an answer, by name, which are compared to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import numpy as np
from scipy.sparse import issparse

from benchmarks.problems import OLDER, Failure, Refusal, named

# The largest array in bytes that is stored; larger ones are stored as a digest.
MOST = 1 << 18

# The answers that are recorded for a ``ValueError``, and for an error that no build should raise.
REFUSED, FAILED = "refused", "failed"

# The public attributes of results, certificates, learners and histories; nothing that is a time.
ATTRIBUTES = (
    *("value", "bound", "gap", "relative_gap", "exact", "certified", "converged", "interrupted"),
    *("method", "reason", "n_iter", "guarantee", "assumes", "excess", "gap_scale", "rounding"),
    *("mask", "x", "order", "labels", "probabilities", "entropy", "temperature", "history"),
    *("log_partition_upper", "log_partition_lower", "width", "flows", "residuals"),
    *("labelings", "values", "gains", "bounds", "gaps", "relative_gaps", "methods", "repeated"),
    *("factor", "slack", "shift", "score", "f_min", "ratio", "n_items", "scores", "parameters"),
    *("submodular", "supermodular", "increasing", "normalized", "nonnegative", "n_sets"),
    *("tolerance", "counterexamples", "witness", "unary", "weights", "grid"),
    *("w", "zero", "stages", "planes", "slopes", "offsets", "columns", "risk_at_zero"),
    *("least_risk", "C", "primal", "dual", "n_columns", "n_planes", "n_cuts", "segment"),
    *("response", "learner", "feature", "threshold", "sign", "coef", "intercept"),
    *("is_convex", "is_extension", "is_upper_bound", "is_exact"),
)


def parts(name: str, answer: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the leaves of an answer as arrays, each with a path for a name."""
    if isinstance(answer, Refusal | Failure):
        yield name, np.array(REFUSED if isinstance(answer, Refusal) else FAILED)
    elif answer is None or isinstance(answer, str):
        yield name, np.array("None" if answer is None else answer)
    elif isinstance(answer, np.ndarray | np.generic | bool | int | float):
        kept = np.asarray(answer)
        if kept.dtype.hasobject:
            raise TypeError(f"{name} holds objects: {answer!r}")
        yield name, kept if kept.nbytes <= MOST else np.array(digest(kept))
    elif isinstance(answer, dict):
        for key, value in answer.items():
            yield from parts(f"{name}/{key}", value)
    elif isinstance(answer, list | tuple):
        if answer and is_numbers(answer):
            answer = np.array(answer)
        elif answer and all(
            isinstance(value, dict) and value.keys() == answer[0].keys() for value in answer
        ):
            answer = {key: [value[key] for value in answer] for key in answer[0]}
        if not isinstance(answer, list | tuple):
            yield from parts(name, answer)
            return
        yield f"{name}/length", np.array(len(answer))
        for k, value in enumerate(answer):
            yield from parts(f"{name}/{k}", value)
    elif issparse(answer):
        whole = answer.tocsr()
        yield from parts(name, {key: getattr(whole, key) for key in ("data", "indices", "indptr")})
    elif hasattr(answer, "detach"):  # a tensor; bfloat16 fits into float32
        tensor = answer.detach()
        whole = tensor.float() if tensor.element_size() == 2 else tensor
        yield from parts(name, whole.numpy())
    elif hasattr(answer, "get_params"):
        yield from parts(name, fitted(answer))
    else:
        yield from parts(name, attributes(name, answer))


def digest(array: np.ndarray) -> str:
    """Return a digest that distinguishes large arrays, even by one bit."""
    bits = sha256(np.ascontiguousarray(array)).hexdigest()
    return f"{array.dtype} {array.shape} {bits}"


def is_numbers(answer: list[Any] | tuple[Any, ...]) -> bool:
    """Return whether all items are numbers, or rows of numbers of one length."""
    if all(isinstance(value, tuple) and len(value) == len(answer[0]) for value in answer):
        return all(map(is_numbers, answer))
    return all(isinstance(value, np.generic | bool | int | float) for value in answer)


def attributes(name: str, answer: Any) -> dict[str, Any]:
    """Return the listed attributes of a record, with one spelling of the names of methods."""
    found = {
        key: named(answer, key)
        for key in ATTRIBUTES
        if hasattr(answer, key) or hasattr(answer, OLDER.get(key, key))
    }
    if not found and not hasattr(answer, "model"):
        raise TypeError(f"{name}: nothing to keep of a {type(answer).__name__}")
    newer = {old: new for new, old in OLDER.items()}
    if "method" in found:
        found["method"] = newer.get(found["method"], found["method"])
    return found


def fitted(model: Any) -> dict[str, Any]:
    """Return the fitted attributes of an estimator of this library, which end in an underscore."""
    if not type(model).__module__.startswith("setwise"):
        return {"model": type(model).__name__}
    names = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    names |= {name for name in ("feature_importances_", "stages_") if hasattr(model, name)}
    return {name: getattr(model, name) for name in sorted(names)}
