"""The waist of the library: a set function is a value on sets and one greedy pass."""

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
from setwise._foundation._immutable import Immutable

if TYPE_CHECKING:
    from setwise.functions._families._compose import Complement, Contraction, Restriction, Sum
    from setwise.functions._families._counts import Counts

# Sets up to this size may be enumerated.
ENUMERABLE = 16


class SetFunction(Immutable, ABC):
    r"""A real function F on the subsets of V = {0, ..., n-1}.

    Everything above needs two questions answered: the value F(A), and the marginal gains along a
    chain of sets,

    .. math:: \mu_k = F(\{o_0, \dots, o_k\}) - F(\{o_0, \dots, o_{k-1}\}),

    which are at once a subgradient of the Lovász extension and a vertex of the base polytope.

    A family implements ``_values(masks)``, F of each row of a boolean (m, n) array, and
    ``_gains(order)``, the gains along an order that has been checked; and it says of itself what
    it knows: ``is_submodular``, ``is_supermodular``, ``is_increasing`` are True, False, or None
    when the family cannot tell. Set functions are immutable and compose: ``F + G``, ``2.0 * F``,
    ``-F``, ``F.restrict(subset)``, ``F.contract(subset)``, ``F.complement()``.

    Examples
    --------
    A family of one's own, the spread of the chosen elements of a line:

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

    # An array times a set function is a mistake, not an array of set functions.
    __array_ufunc__ = None

    @abstractmethod
    def _values(self, masks: BoolArray) -> FloatArray: ...

    @abstractmethod
    def _gains(self, order: IntArray) -> FloatArray: ...

    def __call__(self, mask: ArrayLike) -> float | FloatArray:
        """F(mask): a float for a boolean mask (n,), an array (m,) for masks (m, n)."""
        masks, single = as_masks(mask, self.n)
        values = self._values(masks)
        return float(values[0]) if single else values

    def gains(self, order: ArrayLike) -> FloatArray:
        """Marginal gains along ``order``, m <= n distinct elements: shape (m,), aligned with it."""
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

    # What surrogates ask of a family, instead of its type: each may know a faster way.

    _is_costly: bool = False
    """A value takes a call of somebody's function for each set."""

    @property
    def _is_nonnegative(self) -> bool | None:
        """True where F(A) >= F(empty) for all A by the formula of F; None: its values tell."""
        return None

    def _all_values(self) -> FloatArray | None:
        """The values that F takes, that of the empty set first; None if they are too many."""
        from setwise.functions._families._table import tabulate

        return tabulate(self).values if self.n <= ENUMERABLE else None

    def _largest_gain(self) -> float | None:
        """max over A and i of F(A + i) - F(A), A = empty included; None if that is not known."""
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
        """The elements P, (n,), where F is a function of the counts inside and outside P."""
        return None

    def _on_counts(self, positive: BoolArray, scale: float) -> FloatArray | None:
        """scale F on the grid (m + 1, r + 1) of the counts in a split; None if it is none."""
        return None

    def _as_counts(self) -> Counts | None:
        """A sum of functions of the same counts as one of them; None for anything else."""
        return None

    def _walk(self) -> Walk:
        """The empty set, to be changed element by element."""
        return Walk(self)

    def restrict(self, subset: ArrayLike) -> Restriction:
        """F on the subsets of ``subset`` alone; its elements are renumbered in the given order."""
        from setwise.functions._families._compose import Restriction

        return Restriction(self, subset)

    def contract(self, subset: ArrayLike) -> Contraction:
        """A -> F(A + subset) - F(subset) on the other elements, renumbered in increasing order."""
        from setwise.functions._families._compose import Contraction

        return Contraction(self, subset)

    def complement(self) -> Complement:
        """A -> F(V - A)."""
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
    """A set that changes element by element, and its value."""

    def __init__(self, function: SetFunction) -> None:
        self.function = function
        self.mask = np.zeros(function.n, np.bool_)

    def add(self, i: int) -> None:
        """Put element i in."""
        self.mask[i] = True

    def drop(self, i: int) -> None:
        """Take element i out."""
        self.mask[i] = False

    def value(self) -> FloatArray:
        """F of the set, shape (1,)."""
        return self.function._values(self.mask[None])


def as_set_function(function: object, name: str = "function") -> SetFunction:
    """A set function."""
    if not isinstance(function, SetFunction):
        hint = ": Oracle(function, n) makes one of it" if callable(function) else ""
        raise TypeError(f"{name} must be a set function, got {type(function).__name__}{hint}")
    return function


def empty_value(function: SetFunction) -> float:
    """F of the empty set."""
    return float(function._values(np.zeros((1, function.n), np.bool_))[0])
