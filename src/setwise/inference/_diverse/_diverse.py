"""Diverse lists of labellings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import IntArray, as_array, as_choice, as_count, as_integers
from setwise._foundation._clock import Deadline, Stopwatch
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._progress import check_display, progress_callback
from setwise._foundation._search import Control
from setwise._foundation._threads import as_threads
from setwise.diversities._alternatives import Alternatives
from setwise.diversities._base import Diversity
from setwise.diversities._concatenated import Concatenated
from setwise.fields._field import Field, as_field
from setwise.inference._diverse._alternative_list import alternative_list
from setwise.inference._diverse._greedy_list import greedy_list
from setwise.inference._diverse._joint_list import joint_list
from setwise.inference._diverse._result import DiverseProgress, DiverseResult
from setwise.inference._diverse._step import METHODS


@hints_at_names
def diverse(
    field: Field,
    m: int,
    diversity: Diversity | Concatenated | Alternatives | None = None,
    *,
    method: str = "auto",
    candidates: ArrayLike | None = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    callback: Callable[[DiverseProgress], object] | None = None,
) -> DiverseResult:
    r"""Return m labellings of low energy that differ from each other, with a gap for each.

    Without a diversity the items are ``Alternatives()``, which need no settings. With a diversity,
    the first item is the best labelling. Each next item is the best labelling found for
    :math:`E(y) - d(y \mid S)`, where S are the items before it. This is greedy
    maximisation of :math:`\sum_{y \in S} (c - E(y)) + d(S)` (Prasad, Jegelka and Batra, *Submodular
    meets Structured*). Each step is MAP inference in ``diversity.augment(field, S)``.

    Parameters
    ----------
    field : Field
        The energy E.
    m : int
        The number of items, at least 1. The list, or each of those concatenated, has at most as
        many items as the field has labellings without a forbidden label; ``reason`` says if it is
        shorter. Items may repeat, except those of ``Alternatives``. A joint list always has m
        items.
    diversity : Diversity, Concatenated or Alternatives, optional
        The diversity d, or several with one list for each; ``Alternatives()`` by default.
    method : str
        The method of the steps after the first. "auto" uses "multipliers" with Hamming terms. If
        these leave a gap above a hundredth of a ball's weight on a field of up to 1500 variables,
        it also tries "messages" and takes the better answer. Without Hamming terms it chooses as
        ``solve_map`` does. If there are few labellings it enumerates them. Any method of
        ``solve_map`` is accepted. "branches", for two labels, uses multipliers. If the gap stays
        above a twentieth of a ball's weight, as with small balls under strong smoothing, it
        branches on the labels of variables, with up to 64 bounds per step. "joint" finds all items
        at once, to minimise :math:`\sum_y E(y) - d(S)` for a d that is a sum over variables
        (``DivMBest``, ``VariableCoverage`` without regions, sums of these). With two labels and a
        submodular energy this takes m cuts, one for each bias of a sequence, and is exact; the
        items are nested and have increasing energy, and if m is odd the best labelling is one of
        them. With more labels it is a search from the greedy list, with a bound.
    candidates : array-like of int, shape (K, N), optional
        Labellings that every step after the first takes if one is better than its own answer, with
        a smaller gap: other lists, the pieces of a ``bias_path``, drawings of a user. They cost
        O(K m N) per step. Alternatives and joint lists do not accept candidates.
    time_limit : float, optional
        The largest number of seconds. The list then ends with the items so far and valid gaps, and
        ``reason`` says so. There is always a first item; with 0 it is the labelling of least
        unaries. The answer depends on the machine and its load only if the limit ends the list.
    n_jobs : int, optional
        The number of threads; None for all cores. The answer does not depend on it.
    verbose : bool
        Show items, energies, bounds and seconds on stderr: a bar in a terminal or a notebook (with
        rich), else lines.
    callback : callable, optional
        Called with a ``DiverseProgress`` after each item. A true return value ends the list.

    Returns
    -------
    DiverseResult
        ``labelings`` (m, N), ``values`` (m,), ``gains``, ``bounds``, ``gaps``, ``guarantee``,
        ``timings``. The list is shorter than m if a callback, a time limit or Ctrl-C ends it after
        the first item, or if the field has fewer than m labellings.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> rng = np.random.default_rng(0)
    >>> field = sw.fields.Field(rng.normal(size=(600, 2)))
    >>> field = field + sw.fields.Potts(sw.fields.grid_edges((20, 30)), 0.5)
    >>> six = sw.diverse(field, 6, sw.diversities.HammingBall(weight=20.0, gamma=0.05))
    >>> six.labelings.shape, bool(six.values[0] == sw.solve_map(field).value)
    ((6, 600), True)
    >>> three = sw.diverse(field, 3)  # without any settings
    >>> bool((three.labelings[0] != three.labelings[1:]).mean(axis=1).min() >= 0.03)
    True
    >>> joint = sw.diverse(field, 3, sw.diversities.DivMBest(0.1), method="joint")
    >>> joint.exact, joint.biases.tolist()
    (True, [0.0, -0.2, 0.2])
    """
    field = as_field(field)
    m = as_count(m, "m", least=1)
    diversity = _as_diversity(diversity)
    method = as_choice(method, "method", ["auto", "joint", *METHODS])
    others = _as_candidates(candidates, field)
    check_display(verbose, callback)
    as_threads(n_jobs)
    by_steps = method != "joint" and not isinstance(diversity, Alternatives)
    if isinstance(diversity, Alternatives) and method != "auto":
        raise ValueError(f"method must be 'auto' for alternatives, got {method!r}")
    if len(others) and not by_steps:
        raise ValueError("candidates must be None for alternatives and joint lists")
    deadline, watch = Deadline.of(time_limit, armed=False), Stopwatch()
    with progress_callback(verbose, 0.0, callback, what="diverse", rounds=m) as shown:
        control = Control(callback=shown, deadline=deadline)
        if isinstance(diversity, Alternatives):
            return alternative_list(field, m, diversity, n_jobs, control, watch)
        if method == "joint":
            return joint_list(field, m, diversity, n_jobs, control, watch)
        return greedy_list(field, m, diversity, method, n_jobs, control, watch, others)


def _as_diversity(diversity: object) -> Diversity | Concatenated | Alternatives:
    if diversity is None:
        return Alternatives()
    if not isinstance(diversity, Diversity | Concatenated | Alternatives):
        raise TypeError(
            "diversity must be a Diversity, Concatenated or Alternatives, got "
            f"{type(diversity).__name__}"
        )
    return diversity


def _as_candidates(candidates: ArrayLike | None, field: Field) -> IntArray:
    if candidates is None:
        return np.zeros((0, field.n_variables), np.int64)
    array = as_array(candidates, "candidates")
    if array.ndim != 2 or array.shape[1] != field.n_variables:
        raise ValueError(f"candidates must have shape (K, {field.n_variables}), got {array.shape}")
    return np.ascontiguousarray(as_integers(array, "candidates", below=field.n_labels))
