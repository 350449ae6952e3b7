"""The set of least expected loss, by the method that suits the loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from setwise._foundation._arguments import (
    FloatArray,
    as_choice,
    as_count,
    as_number,
    as_numbers,
)
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._threads import as_threads
from setwise.decisions._answers import Answers
from setwise.decisions._counts import MOST_FOR_COUNTS, by_counts
from setwise.decisions._decision import Decision
from setwise.decisions._enumeration import by_enumeration, ignores_truth, is_affordable
from setwise.decisions._label_maps._classes import decide_classes
from setwise.decisions._label_maps._decision import LabelDecision
from setwise.decisions._lists import among_candidates
from setwise.decisions._majority import by_majority
from setwise.decisions._presence import Law
from setwise.decisions._probabilities import SetProbabilities, read_probabilities
from setwise.decisions._ratio import by_integrals
from setwise.decisions._samples import Sampler
from setwise.inference import DiverseResult, MarginalsResult
from setwise.losses import Loss, get

_INDEPENDENT = "independent elements"


@overload
def decide(
    probabilities: ArrayLike | MarginalsResult | DiverseResult,
    loss: str | Loss,
    *,
    classes: Literal["separate"] = "separate",
    offsets: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    sets: str = "auto",
    weights: ArrayLike | None = None,
    presence: ArrayLike | None = None,
    ignore: None = None,
    label: int = 1,
    temperature: float = 1.0,
    n_jobs: int | None = None,
) -> Decision: ...


@overload
def decide(
    probabilities: ArrayLike | MarginalsResult,
    loss: str | Loss,
    *,
    classes: Literal["exclusive", "present"],
    sets: str = "auto",
    weights: ArrayLike | None = None,
    presence: ArrayLike | None = None,
    ignore: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> LabelDecision: ...


@hints_at_names
def decide(
    probabilities: ArrayLike | MarginalsResult | DiverseResult,
    loss: str | Loss,
    *,
    classes: str = "separate",
    offsets: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    sets: str = "auto",
    weights: ArrayLike | None = None,
    presence: ArrayLike | None = None,
    ignore: ArrayLike | None = None,
    label: int = 1,
    temperature: float = 1.0,
    n_jobs: int | None = None,
) -> Decision | LabelDecision:
    r"""Find the set of least expected loss, with a lower bound on the expected loss of every set.

    .. math:: z^* = \arg\min_z \; E_{y} \, \Delta(y, z), \qquad y_i \sim \text{Bernoulli}(p_i)

    independently. A threshold of 1/2 is optimal for the Hamming loss, but not for measures of
    overlap: for the Jaccard and the Dice loss the best set often contains elements below 1/2.
    Independence is an assumption, under which a set is empty with probability prod (1 - p). If the
    true probability differs (for instance if every row has a label, or most classes are absent from
    a picture), pass ``presence``, which changes the distribution to

    .. math:: P(y = \emptyset) = 1 - \pi, \qquad P(y) = \frac1c \prod_{i \in y} c p_i
        \prod_{i \notin y} (1 - c p_i) \quad (y \ne \emptyset), \qquad
        c \, \pi = 1 - \prod_i (1 - c p_i),

    so that element i still has probability p_i. Independence is the case c = 1.

    ============  ==================================================================  =========
    method        losses                                                              cost
    ============  ==================================================================  =========
    integrals     Jaccard, Dice, F-beta: exact to 1e-9 at a million elements          O(n log n)
    majority      increasing losses that do not depend on the truth: exact            O(n)
    enumeration   any, up to 10 elements (18 if it does not depend on the truth)      O(4^n)
    counts        increasing losses of the two counts, up to 256 elements: exact      O(n^3)
    samples       all others: a good set, its loss estimated, a weak bound            O(M n)
    candidates    any, for a list of labellings                                       O(m^2 n)
    ============  ==================================================================  =========

    With ``classes="exclusive"`` every element has one class, as in semantic segmentation, and the
    answer is the label map with the least mean over the classes of the expected loss. Elements are
    independent of each other. Finding the best map is NP-hard in general, so the map that was found
    comes with ``bound``, a lower bound for all maps. The bound holds for fixed class weights, where
    a class that is neither true nor predicted has a loss of 0. The mean over the classes that occur
    in an image has a random denominator and is not bounded. For that mean,
    ``classes="present"`` maximises a similar quantity, with a bound: the expected sum of the scores
    of the classes that occur, divided by their expected number.

    Parameters
    ----------
    probabilities : array-like of shape (p,) or (n, p), MarginalsResult or DiverseResult
        The probability that each element is in the truth. For exclusive classes, the shape is
        (B, C, ...) for B images, or (n, C) for n elements, and the C probabilities of an element
        sum to 1. A SciPy sparse matrix (n, p) gives a mask in CSR format and is otherwise decided
        like the same matrix in dense form. For marginals, the probabilities are the column of
        ``label``; the answer then holds for the product of the marginals, which is not the
        distribution of the field. For a list, the truth is one of its labellings, with weights
        exp(-energy / temperature), and the answer is the best of these labellings.
    loss : str or Loss
        A name from ``sw.losses.names()`` or any loss. For exclusive classes: Jaccard, Dice, F-beta.
    classes : {"separate", "exclusive", "present"}
        Whether each set is decided for itself, or elements have one class each, and then whether
        all classes count, or those that occur in the truth, which needs ``presence``.
    offsets : array-like of int of shape (n + 1,), optional
        Set i is ``probabilities[offsets[i]:offsets[i + 1]]``.
    groups : array-like of shape (p,), optional
        The set of each element; the answers are in the sorted order of the groups' names.
    sets : {"auto", "rows", "columns", "cells"}
        Whether the rows of a matrix are sets (the default), or its columns, or all cells are one
        set. For exclusive classes: whether each image is decided for itself ("rows"), or all images
        together (the default).
    weights : array-like, optional
        The multiplicity of each element, in the shape of the probabilities; for Jaccard, Dice and
        F-beta. The best set need not consist of the most probable elements then: ``exact`` is
        False, and ``bound`` holds for all sets. For exclusive classes: the weights (C,) of the
        classes in the mean.
    presence : array-like, optional
        The probability that a set is not empty, one number per set. If it contradicts the
        probabilities, probabilities above it are lowered to it, or all are raised in proportion
        until they sum to it. The method "majority" then applies only to losses that are sums over
        the elements. For exclusive classes: the probability (C,) that a class occurs, or (B, C)
        with ``sets="rows"``.
    ignore : boolean array-like, optional
        For exclusive classes: the elements, (B, ...) or (n,), that are left out.
    label : int
        The label of the field whose variables form the set.
    temperature : float
        The temperature of the distribution on a list; positive.
    n_jobs : int, optional
        Threads; None for all cores. The answer does not depend on it.

    Returns
    -------
    Decision or LabelDecision
        ``mask`` (``labels`` and ``of_classes`` for exclusive classes), ``expected``, ``bound``,
        ``regret_bound``, ``error``, ``exact``, ``method``, ``law``.

    Examples
    --------
    >>> import setwise as sw
    >>> p = [0.9, 0.45, 0.4, 0.1]
    >>> sw.decide(p, "hamming").mask.tolist()
    [True, False, False, False]
    >>> best = sw.decide(p, "dice")
    >>> best.mask.tolist(), round(best.expected, 3), best.exact
    ([True, True, True, False], 0.31, True)
    """
    loss = get(loss)
    threads = as_threads(n_jobs)
    temperature = as_number(temperature, "temperature", positive=True)
    label = as_count(label, "label")
    if as_choice(classes, "classes", ("separate", "exclusive", "present")) != "separate":
        if offsets is not None or groups is not None:
            name = "offsets" if groups is None else "groups"
            raise ValueError(f"{name} must be None for exclusive classes: see sets")
        present = classes == "present"
        return decide_classes(
            probabilities, loss, sets, weights, presence, present, ignore, threads
        )
    if ignore is not None:
        raise ValueError("ignore must be None for separate sets: leave the elements out")
    sampler = Sampler()
    if isinstance(probabilities, DiverseResult | MarginalsResult):
        given = {"offsets": offsets, "groups": groups, "weights": weights}
        if isinstance(probabilities, DiverseResult):
            given["presence"] = presence
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"{name} must be None for the answer of a field, got {value!r}")
    if isinstance(probabilities, DiverseResult):
        masks = probabilities.labelings == label
        answers = among_candidates(loss, masks, probabilities.values, temperature)
        single = read_probabilities(masks[0], offsets=None, groups=None, sets="auto")
        return _decision(single, answers, "candidates", f"the list at temperature {temperature:g}")
    law = _INDEPENDENT
    if isinstance(probabilities, MarginalsResult):
        columns = probabilities.probabilities
        chosen = as_count(label, "label", most=columns.shape[1] - 1)
        probabilities, law = columns[:, chosen], "the product of the marginals"
    p = read_probabilities(probabilities, offsets=offsets, groups=groups, sets=sets)
    counted = None
    if weights is not None:
        if p.pattern is not None:
            raise ValueError("weights must be None for a sparse matrix of probabilities")
        counted = p.in_order(as_numbers(weights, "weights", shape=p.shape, nonnegative=True))
    if presence is not None:
        if weights is not None:
            raise ValueError("presence must be None when weights are given, got both")
        shape = () if p.single else (p.n,)
        q = as_numbers(np.asarray(presence), "presence", shape=shape, nonnegative=True)
        if q.size and q.max() > 1:
            raise ValueError(f"presence must lie in [0, 1], got {q.max():g}")
        p, law = p.with_presence(np.atleast_1d(q)), f"{law} of sets that are there or not"
    answers, method = _answers(loss, p, counted, sampler, threads)
    return _decision(p, answers, method, law)


def _answers(
    loss: Loss, p: SetProbabilities, weights: FloatArray | None, sampler: Sampler, threads: int
) -> tuple[Answers, str]:
    """Decide by the first suitable method, and return its name too."""
    plain, scale = loss._unscaled()
    ratio = plain._fraction
    if weights is not None and ratio is None:
        raise ValueError(f"weights must be None for {loss!r}: they are for Jaccard, Dice, F-beta")
    if ratio is not None:
        return _scaled(by_integrals(ratio, p, weights, threads), scale), "integrals"
    if p.pattern is not None:
        return _answers_of_parts(loss, p, sampler, threads)
    sizes = np.unique(np.diff(p.offsets))
    simple = p.presence is None or loss._traits.is_modular
    if simple and all(_is_increasing(loss, int(n)) and ignores_truth(loss, int(n)) for n in sizes):
        return by_majority(loss, p, sampler), "majority"
    parts = [_one_set(loss, p.law(i), sampler) for i in range(p.n)]
    mask = np.concatenate([np.zeros(0, np.bool_), *(a.mask for a, _ in parts)])
    return _joined(mask, [a for a, _ in parts]), _names(parts) or "enumeration"


def _answers_of_parts(
    loss: Loss, p: SetProbabilities, sampler: Sampler, threads: int
) -> tuple[Answers, str]:
    """Decide the sets of a sparse matrix a few at a time, from all of their elements."""
    masks, parts = [], []
    for part in p.dense_parts():
        parts.append(_answers(loss, part, None, sampler, threads))
        masks.append(parts[-1][0].mask.reshape(part.shape))
    if not parts:
        return _answers(loss, replace(p, pattern=None), None, sampler, threads)
    return _joined(p.joined(masks), [a for a, _ in parts]), _names(parts)


def _joined(mask: Any, parts: list[Answers]) -> Answers:
    columns = ("expected", "bound", "error", "exact")
    return Answers(
        mask, *(np.concatenate([getattr(a, name) for a in parts] or [[]]) for name in columns)
    )


def _names(parts: list[tuple[Answers, str]]) -> str:
    """Return the names of the methods that were used."""
    return " and ".join(sorted({name for _, some in parts for name in some.split(" and ")}))


def _one_set(loss: Loss, law: Law, sampler: Sampler) -> tuple[Answers, str]:
    if is_affordable(loss, len(law)):
        return by_enumeration(loss, law), "enumeration"
    plain, scale = loss._unscaled()
    if len(law) <= MOST_FOR_COUNTS:
        found = by_counts(plain, law)
        if found is not None:
            return _scaled(found, scale), "counts"
    return sampler.decide(loss, law), "samples"


def _is_increasing(loss: Loss, n: int) -> bool:
    known = loss.is_increasing
    if known is None and ignores_truth(loss, n):
        known = loss.function_of(np.zeros(n, np.bool_)).is_increasing
    return bool(known)


def _scaled(answers: Answers, scale: float) -> Answers:
    return replace(
        answers,
        expected=scale * answers.expected,
        bound=scale * answers.bound,
        error=scale * answers.error,
    )


def _decision(p: SetProbabilities, answers: Answers, method: str, law: str) -> Decision:
    """Make the record, with numbers for a single set and arrays for several."""
    one: Callable[[FloatArray], float | FloatArray]
    one = (lambda values: float(values[0])) if p.single else (lambda values: values)
    return Decision(
        mask=answers.mask if issparse(answers.mask) else p.as_given(answers.mask),
        expected=one(answers.expected),
        bound=one(answers.bound),
        error=one(answers.error),
        exact=bool(answers.exact[0]) if p.single else answers.exact,
        method=method,
        law=law,
    )
