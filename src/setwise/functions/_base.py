"""The interface of set functions: values on sets, and marginal gains of a greedy pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_masks,
    as_number,
    as_order,
)
from setwise._foundation._base_classes import Immutable
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS
from setwise.functions._numbers import Numbers, numbers_from_values

if TYPE_CHECKING:
    from setwise.functions._families._compose import Complement, Contraction, Restriction, Sum
    from setwise.functions._families._counts import Counts

# The most elements of a function whose sets may all be enumerated. The 65536 values take tens of
# milliseconds for compiled families and less than a second for a Python callable. Not tuned.
ENUMERABLE = 16


class SetFunction(Immutable, ABC):
    r"""A real function F on the subsets of V = {0, ..., n-1}.

    All algorithms use only the value F(A) and the marginal gains along a chain of sets,

    .. math:: \mu_k = F(\{o_0, \dots, o_k\}) - F(\{o_0, \dots, o_{k-1}\}),

    which are a subgradient of the Lovász extension and a vertex of the base polytope.

    A family implements ``_values(masks)``, F of each row of a boolean (m, n) array, and
    ``_gains(order)``, the gains along an order that has been checked. Its properties
    ``is_submodular``, ``is_supermodular`` and ``is_increasing`` are True, False, or None if they
    are not known. Set functions are immutable and compose: ``F + G``, ``2.0 * F``,
    ``-F``, ``F.restrict(subset)``, ``F.contract(subset)``, ``F.complement()``.

    Examples
    --------
    A user-defined family, the spread of the chosen elements of a line:

    >>> import numpy as np
    >>> import setwise as sw
    >>> class Spread(sw.functions.SetFunction):
    ...     def __init__(self, n):
    ...         self._set(n=n)
    ...
    ...     def _values(self, masks):
    ...         return np.array([np.ptp(np.flatnonzero(m)) if m.any() else 0.0 for m in masks])
    ...
    ...     def _gains(self, order):
    ...         chain = np.tri(len(order) + 1, self.n, -1, dtype=bool)
    ...         masks = np.zeros_like(chain)
    ...         masks[:, order] = chain[:, : len(order)]
    ...         return np.diff(self._values(masks))
    >>> Spread(4).gains([1, 3, 0]).tolist()
    [0.0, 2.0, 1.0]
    """

    n: int

    # With this, an array times a set function raises an error instead of making an array of set
    # functions.
    __array_ufunc__ = None

    @abstractmethod
    def _values(self, masks: BoolArray) -> FloatArray: ...

    @abstractmethod
    def _gains(self, order: IntArray) -> FloatArray: ...

    def __call__(self, mask: ArrayLike) -> float | FloatArray:
        """Evaluate F: a float for a boolean mask (n,), an array (m,) for masks (m, n)."""
        masks, single = as_masks(mask, self.n)
        values = self._values(masks)
        return float(values[0]) if single else values

    def gains(self, order: ArrayLike) -> FloatArray:
        """Return the marginal gains (m,) along ``order``, which has m <= n distinct elements."""
        return self._gains(as_order(order, self.n))

    @property
    def is_submodular(self) -> bool | None:
        """Whether F(A) + F(B) >= F(A | B) + F(A & B) for all A, B; None if not known."""
        return None

    @property
    def is_supermodular(self) -> bool | None:
        """Whether -F is submodular; None if not known."""
        return None

    @property
    def is_increasing(self) -> bool | None:
        """Whether F(A) <= F(B) for all A inside B; None if not known."""
        return None

    # Surrogates use these members instead of the type of a family. A family may override them with
    # faster versions.

    _is_costly: bool = False
    """Whether each value needs a call of a user's function."""

    @property
    def _is_nonnegative(self) -> bool | None:
        """Whether F(A) >= F(empty) for all A by the formula of F; None if unknown."""
        return None

    def _all_values(self) -> FloatArray | None:
        """Return all values of F, beginning with the empty set, or None if there are too many."""
        from setwise.functions._families._table import tabulate

        return tabulate(self).values if self.n <= ENUMERABLE else None

    def _largest_gain(self) -> float | None:
        """Return the maximum over A and i of F(A + i) - F(A); None if it is not known."""
        n = self.n
        if n == 0:
            return 0.0
        if self.is_submodular:
            singles = self._values(np.eye(n, dtype=np.bool_))
            return float(singles.max() - empty_value(self))
        if self.is_supermodular:
            without = self._values(~np.eye(n, dtype=np.bool_))
            return float(self._values(np.ones((1, n), np.bool_))[0] - without.min())
        if n > ENUMERABLE:
            return None
        from setwise.functions._families._table import tabulate

        cube = tabulate(self).values.reshape((2,) * n)
        return float(max(np.diff(cube, axis=axis).max() for axis in range(n)))

    @property
    def _split(self) -> BoolArray | None:
        """The mask P (n,) if F depends only on the counts inside and outside P, else None."""
        return None

    def _on_counts(self, positive: BoolArray, scale: float) -> FloatArray | None:
        """Return scale * F on the grid (m + 1, r + 1) of counts inside and outside P, or None."""
        return None

    def _as_counts(self) -> Counts | None:
        """Return a sum of functions of the same counts as one such function, else None."""
        return None

    # The proofs of `minimize` and `maximize` use these bounds on rounding errors. They hold for any
    # function whose values have at most ``FEW_ROUNDINGS`` of them. A family overrides them with
    # sharper bounds if it knows its numbers.

    def _numbers(self) -> Numbers:
        """Return bounds on the numbers that define F, as far as its values determine them."""
        return numbers_from_values(self)

    def _gains_with_errors(self, order: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the gains of one greedy pass, with bounds on their rounding errors."""
        gains = self._gains(order)
        return gains, self._gain_errors(order, gains)

    def _gain_errors(self, order: IntArray, gains: FloatArray) -> FloatArray:
        """Return bounds on the rounding errors of gains, as differences of two values."""
        chain = np.abs(np.concatenate([[0.0], np.cumsum(gains)]) + empty_value(self))
        errors: FloatArray = FEW_ROUNDINGS * EPS * (chain[1:] + chain[:-1])
        return errors

    def _bend(self, sign: float = 1.0, lost: float = 0.0) -> float:
        """Return the largest violation of submodularity by ``sign`` times F, over all A, i and j.

        The inequality is F(A + i) + F(A + j) >= F(A + i + j) + F(A).

        A family counts as submodular if every violation is within a tolerance, but such violations
        can add up. The result is 0 if the form of F excludes violations, or if they are not
        checked. ``lost`` bounds the rounding errors in the numbers of F.
        """
        return lost

    def _fall(self) -> float:
        """Return the largest decrease when an element is added, for an F with ``is_increasing``."""
        return 0.0

    def _without_constant(self) -> SetFunction:
        """Return F without the constant of its tables, or F itself if that would not be exact."""
        return self

    def _walk(self) -> Walk:
        """Return a ``Walk``, a set that changes element by element, which starts empty."""
        return Walk(self)

    def restrict(self, subset: ArrayLike) -> Restriction:
        """Return F on the subsets of ``subset``, whose elements are renumbered in this order."""
        from setwise.functions._families._compose import Restriction

        return Restriction(self, subset)

    def contract(self, subset: ArrayLike) -> Contraction:
        """Return A -> F(A + subset) - F(subset) on the other elements, renumbered in order."""
        from setwise.functions._families._compose import Contraction

        return Contraction(self, subset)

    def complement(self) -> Complement:
        """Return the function A -> F(V - A)."""
        from setwise.functions._families._compose import Complement

        return Complement(self)

    def __add__(self, other: SetFunction) -> Sum:
        from setwise.functions._families._compose import Sum

        if not isinstance(other, SetFunction):
            return NotImplemented
        return Sum([self, other])

    def __sub__(self, other: SetFunction) -> Sum:
        from setwise.functions._families._compose import Sum

        if not isinstance(other, SetFunction):
            return NotImplemented
        return Sum([self, other], [1.0, -1.0])

    def __mul__(self, scale: float) -> Sum:
        from setwise.functions._families._compose import Sum

        return Sum([self], [as_number(scale, "scale")])

    __rmul__ = __mul__

    def __neg__(self) -> Sum:
        return self * -1.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.n})"


class Walk:
    """A set that changes element by element, with its value."""

    def __init__(self, function: SetFunction) -> None:
        self.function = function
        self.mask = np.zeros(function.n, np.bool_)

    def add(self, i: int) -> None:
        """Add element i."""
        self.mask[i] = True

    def drop(self, i: int) -> None:
        """Remove element i."""
        self.mask[i] = False

    def value(self) -> FloatArray:
        """Return F of the set, of shape (1,)."""
        return self.function._values(self.mask[None])


def as_set_function(function: object, name: str = "function") -> SetFunction:
    """Return ``function`` if it is a set function, else raise."""
    if not isinstance(function, SetFunction):
        hint = ": Oracle(function, n) makes one of it" if callable(function) else ""
        raise TypeError(f"{name} must be a set function, got {type(function).__name__}{hint}")
    return function


def empty_value(function: SetFunction) -> float:
    """Return F of the empty set."""
    return float(function._values(np.zeros((1, function.n), np.bool_))[0])
