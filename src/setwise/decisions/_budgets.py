"""A given number of labels for each row, with the best mean over the labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    as_array,
    as_count,
    as_flag,
    as_numbers,
)
from setwise._foundation._base_classes import Versioned
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._threads import as_threads
from setwise.decisions._probabilities import read_probabilities
from setwise.losses import Loss, get

# The scores are sums of numbers up to 1, each with a few roundings per row; the bound is rounded
# outwards by 1e-11 of its terms (``budget.hpp``).
_ROUNDING = 1e-10


@dataclass(frozen=True, eq=False)
class BudgetDecision(Versioned):
    """The labels of each row that were found, with a bound for all other choices.

    Attributes
    ----------
    mask : boolean array or CSR matrix of shape (n, p)
        The labels of each row; in CSR format if the probabilities are sparse.
    expected : float
        The weighted mean over the labels of the loss at the expected counts.
    of_labels : array of shape (p,)
        The loss of each label.
    bound : float
        No choice has a loss below this.
    exact : bool
        Whether the choice is proved to be optimal, up to rounding.
    passes : int
        The number of passes over the rows, from all starts.

    Examples
    --------
    >>> import setwise as sw
    >>> p = [[0.9, 0.8, 0.1], [0.8, 0.6, 0.2], [0.9, 0.3, 0.0]]
    >>> sw.decide_at_k(p, "dice", 1).mask.astype(int).tolist()
    [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    """

    mask: BoolArray
    expected: float
    of_labels: FloatArray
    bound: float
    exact: bool
    passes: int

    @property
    def value(self) -> float:
        """``expected``, under the name that all results share."""
        return self.expected

    @property
    def gap(self) -> float:
        """``regret_bound``, under the name that all results share."""
        return self.regret_bound

    @property
    def regret_bound(self) -> float:
        """The difference expected - bound: no choice has a loss that is lower by more than this."""
        return max(self.expected - self.bound, 0.0)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.mask.shape))
        chosen = int(self.mask.sum())
        proved = "exact" if self.exact else f"at most {self.regret_bound:.2g} above the best"
        return f"BudgetDecision({chosen} labels of {shape}, expected {self.expected:.4g}, {proved})"


@hints_at_names
def decide_at_k(
    probabilities: ArrayLike,
    loss: str | Loss,
    k: int,
    *,
    weights: ArrayLike | None = None,
    at_most: bool = False,
    n_jobs: int | None = None,
) -> BudgetDecision:
    r"""Choose k labels for each row, such that the mean loss over the labels is least.

    Measures that are averaged over the labels (macro measures) couple all rows: the labels of one
    row change what those of another one are worth. For label c let :math:`m_c` be the expected
    number of rows that have it, :math:`k_c` the number of rows that get it, and :math:`a_c` the
    expected number of these that have it. Its loss is one minus

    .. math:: \frac{a_c}{m_c + k_c - a_c} \;\text{(Jaccard)}, \qquad
        \frac{(1 + \beta^2) \, a_c}{k_c + \beta^2 m_c} \;\text{(F-beta)}, \qquad
        1 - \prod_{i \,\text{with}\, c} (1 - p_{ic}) \;\text{(coverage)},

    and 1 if no row gets it. These are the measures at the expected counts. For coverage, the
    probability that a label is right in at least one row, that is the expected loss.

    Rows take their best labels in turn, given all other rows, until no row improves (block
    coordinate ascent). The bound prices the rows (``cpp/decisions/budget.hpp``). Entries of
    probability 0 are never chosen. The time of a pass, and of a step of the bound, is about
    proportional to the number of entries.

    Parameters
    ----------
    probabilities : array-like or sparse matrix of shape (n, p)
        The probability of each label of each row.
    loss : str or Loss
        Jaccard, Dice or F-beta, or "coverage".
    k : int
        The number of labels of each row. Rows with fewer labels of positive probability get all of
        them.
    weights : array-like of shape (p,), optional
        The weights of the labels in the mean.
    at_most : bool
        Whether rows may get fewer than k labels.
    n_jobs : int, optional
        Threads of the bound; None for all cores. The answer does not depend on it.

    Returns
    -------
    BudgetDecision
        ``mask``, ``expected``, ``of_labels``, ``bound``, ``regret_bound``, ``exact``, ``passes``.

    Examples
    --------
    >>> import setwise as sw
    >>> p = [[0.6, 0.5], [0.6, 0.5], [0.6, 0.1]]
    >>> sw.decide_at_k(p, "coverage", 1).mask.astype(int).tolist()
    [[0, 1], [0, 1], [1, 0]]
    """
    score, b, scale = _score(loss)
    k = as_count(k, "k")
    at_most = as_flag(at_most, "at_most")
    threads = as_threads(n_jobs)
    if not issparse(probabilities):
        array = as_array(probabilities, "probabilities")
        if array.ndim != 2:
            raise ValueError(f"probabilities must have shape (n, p), got {array.shape}")
    read = read_probabilities(probabilities, offsets=None, groups=None, sets="rows")
    n, p = read.shape
    pattern = read.pattern
    if pattern is None:
        pattern = csr_array(read.flat.reshape(n, p))
    share = np.full(p, 1 / max(p, 1))
    if weights is not None:
        share = as_numbers(weights, "weights", shape=(p,), nonnegative=True)
        if not share.any():
            raise ValueError("weights must not all be 0")
        share = share / share.sum()
    if p == 0:
        mask = pattern.astype(np.bool_) if issparse(probabilities) else np.zeros((n, 0), np.bool_)
        return BudgetDecision(mask, 0.0, np.empty(0), 0.0, True, 0)
    flat = pattern.data.astype(np.float64)
    some = flat > 0
    ends = np.concatenate([[0], np.cumsum(some)])[pattern.indptr].astype(np.int64)
    labels = pattern.indices[some].astype(np.int64)
    chosen, terms = np.empty(len(labels), np.uint8), np.empty(p)
    most, passes = _core.choose_labels(
        flat[some], labels, ends, score, b, share, k, at_most, threads, chosen, terms
    )
    expected = float(scale * max(1 - terms.sum(), 0.0))
    bound = float(scale * min(max(1 - most - _ROUNDING, 0.0), expected / scale))
    with np.errstate(invalid="ignore", divide="ignore"):
        of_labels = scale * (1 - np.where(share > 0, terms / share, np.nan))
    picked = chosen.view(np.bool_)
    inner = np.concatenate([[0], np.cumsum(picked)])[ends]
    entries = np.ones(inner[-1], np.bool_), labels[picked], inner
    kind = type(pattern)
    mask = kind(entries, shape=(n, p))
    return BudgetDecision(
        mask if issparse(probabilities) else mask.toarray(),
        expected,
        of_labels,
        bound,
        expected - bound <= 3 * scale * _ROUNDING,
        int(passes),
    )


def _score(loss: object) -> tuple[str, float, float]:
    """Return the score's name, b = beta^2, and the factor of the loss."""
    if isinstance(loss, str) and loss == "coverage":
        return "coverage", 1.0, 1.0
    if not isinstance(loss, str | Loss):
        raise TypeError(f"loss must be a Loss or a name, got {type(loss).__name__}")
    plain, scale = get(loss)._unscaled()
    ratio = plain._fraction
    if ratio is None:
        raise ValueError(f"loss must be Jaccard, Dice, F-beta or 'coverage', got {loss!r}")
    return ("jaccard" if ratio.beta is None else "f_beta"), (ratio.beta or 1.0) ** 2, scale
