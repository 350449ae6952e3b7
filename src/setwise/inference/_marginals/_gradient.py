"""The gradient of the upper bound on log Z in the unaries and the weights of potentials."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise._foundation._base_classes import Record
from setwise._foundation._threads import as_threads
from setwise.fields._field import Field, as_field
from setwise.fields._terms import PottsTerm, TableTerm
from setwise.inference._conditioning._conditioned import Conditioned
from setwise.inference._map._junction_tree import narrow, planned
from setwise.inference._marginals._counts._counts import counts_weights
from setwise.inference._marginals._result import MarginalsResult
from setwise.inference._marginals._trees._tree_descent import TreeDescent
from setwise.inference._relaxation._relaxation import Relaxation


@dataclass(frozen=True, eq=False, repr=False)
class LogPartitionGradient(Record):
    r"""The gradient of the least upper bound on log Z.

    Attributes
    ----------
    unary : array of shape (N, L)
        The gradient with respect to the unaries, :math:`-p / t`.
    weights : array of shape (K,)
        The derivative with respect to a factor of each of ``field.potentials``. It is minus the
        Lovász extension of the potential at p, including its constant, divided by t. The extension
        is larger than the potential's expectation under the factorised distribution. Three methods
        differ: for a result of ``trees``, the extension of pairs is replaced by their expectation
        under the marginals of pairs at which the bound is attained; for ``counts``, that of
        functions of counts likewise; and for ``elimination``, all extensions are replaced by
        expectations under the field's distribution.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]]) + sw.fields.Potts([[0, 1]], 1.0)
    >>> post = sw.marginals(field, "projection", tol=1e-9)
    >>> sw.inference.log_partition_gradient(field, post).weights.round(3).tolist()
    [-0.231]
    """

    unary: FloatArray
    weights: FloatArray


def log_partition_gradient(
    field: Field, result: MarginalsResult, *, n_jobs: int | None = None
) -> LogPartitionGradient:
    r"""Compute the gradient of ``log_partition_upper`` in unaries and weights of potentials.

    The bound is :math:`U = \max_p \sum_i H(p_i) - f(p) / t`, where f is the Lovász extension of the
    energy (for ``trees`` with the information of pairs, and their expected energies). So its
    gradient is minus that of f in the parameters at the maximiser p, and as accurate as p.

    Parameters
    ----------
    field : Field
        The field of the result.
    result : MarginalsResult
        A result for this field, by a method with an upper bound.
    n_jobs : int, optional
        The number of threads; None for all cores.

    Returns
    -------
    LogPartitionGradient
        ``unary`` (N, L) and ``weights``, one per potential. The cost is O(N L) per potential, O(N L
        log n) with regions of n variables.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]])
    >>> gradient = sw.inference.log_partition_gradient(field, sw.marginals(field))
    >>> gradient.unary.round(2).tolist(), gradient.weights.tolist()
    ([[-0.73, -0.27], [-0.12, -0.88]], [])
    """
    field = as_field(field)
    if not isinstance(result, MarginalsResult):
        raise TypeError(f"result must be a MarginalsResult, got {type(result).__name__}")
    if not result.certified:
        raise ValueError(f"result must have an upper bound, got one of {result.method}")
    if result.probabilities.shape != field.unary.shape:
        raise ValueError(
            f"result must be for a field of shape {field.unary.shape}, "
            f"got {result.probabilities.shape}"
        )
    t = result.temperature
    # constants are removed as in a search, because large ones hide the digits of small potentials
    problem = Conditioned.of(field)
    weights = _weights_without_constants(problem.field, result, as_threads(n_jobs))
    return LogPartitionGradient(
        -result.probabilities.astype(np.float64) / t,
        weights - np.array(problem.constants, np.float64) / t,
    )


def _weights_without_constants(field: Field, result: MarginalsResult, n_threads: int) -> FloatArray:
    """Return the gradient (K,) in the weights of potentials, for a field without constants."""
    if result.method == "elimination":
        return _exact_weights(field, result, n_threads)
    if result.method == "counts":
        return counts_weights(field, result, n_threads)
    p = np.ascontiguousarray(result.probabilities, np.float64)
    descent = None
    if result.method == "trees":
        descent = TreeDescent(field, result.temperature, n_threads)
        if result.state is None or not descent.fits(result.state):
            raise ValueError("result must be of this field, got one of other edges or regions")
        descent.set_messages(result.state)
    flat = Field(np.zeros(field.unary.shape))
    values = []
    for potential in field.potentials:
        constant, unary, terms = (flat + potential)._folded()
        value = constant + float((unary * p).sum())
        if descent is not None:
            pairs = [term for _, term in terms if isinstance(term, PottsTerm | TableTerm)]
            value += sum(float(descent.expected_energies(term, p).sum()) for term in pairs)
            terms = tuple(item for item in terms if not isinstance(item[1], PottsTerm | TableTerm))
        alone = Relaxation.of_terms(flat.unary, terms)
        values.append(value + alone.constant + alone.extension(p, n_threads))
    return -np.array(values, np.float64) / result.temperature


def _exact_weights(field: Field, result: MarginalsResult, n_threads: int) -> FloatArray:
    """Return minus the expectation of each potential over t, (K,), by elimination."""
    t = result.temperature
    if narrow(field) is not None:
        raise ValueError("result must be of this field, got one of other edges or regions")
    tree, _, owners, _ = planned(field, t)
    tree.log_partition(n_threads)
    p: FloatArray = np.empty(field.unary.shape)
    logs: FloatArray = np.empty(len(owners))
    tree.marginals(p, logs, n_threads)
    weights = np.bincount(owners, logs, minlength=len(field.potentials)).astype(np.float64)
    flat = Field(np.zeros(field.unary.shape))
    for k, potential in enumerate(field.potentials):
        constant, unary, _ = (flat + potential)._folded()
        weights[k] -= (constant + float((unary * p).sum())) / t
    return weights
