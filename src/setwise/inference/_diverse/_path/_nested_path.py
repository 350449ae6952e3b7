"""The labellings of a field along a bias: a nested chain, with its breakpoints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, IntArray, as_integers, as_number
from setwise._foundation._base_classes import Record


@dataclass(frozen=True, eq=False, repr=False)
class BiasPath(Record):
    r"""The labellings of least :math:`E(y) + b \, |\{i : y_i = 1\}|` for all b in [-r, r].

    They are nested: the larger the bias, the smaller the set of ones. Piece k is the best labelling
    from ``breakpoints[k - 1]`` to ``breakpoints[k]``; piece 0 has the most ones.

    Attributes
    ----------
    breakpoints : array of shape (K,)
        The increasing biases between -r and r at which the best labelling changes.
    last : array of shape (N,)
        The last piece in which each variable is 1; -1 for none.
    sizes : array of shape (K + 1,)
        The number of ones of each piece, decreasing.
    values : array of shape (K + 1,)
        The energies E of the pieces, without the bias.
    biases : array of shape (K + 1,)
        A bias for which each piece is optimal.
    max_bias : float
        r.
    whole : bool
        Whether all breakpoints in [-max_bias, max_bias] were found. Otherwise pieces may be
        missing between two that differ in few variables (``resolution``), or because of
        ``max_cuts``.
    slacks : array of shape (K,)
        The variables that change at a breakpoint change within this distance of it on the complete
        path. It is 0 if the pieces on both sides are known to be neighbours.
    n_cuts : int
        The number of cuts, each with a warm start from the flow of the last.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, -2.0], [0.0, -1.0], [0.0, 1.0]])
    >>> path = sw.inference.bias_path(field, max_bias=3.0)
    >>> path.breakpoints.tolist(), path.sizes.tolist()
    ([-1.0, 1.0, 2.0], [3, 2, 1, 0])
    >>> path.labeling(0.5).tolist()
    [1, 1, 0]
    """

    breakpoints: FloatArray
    last: IntArray
    sizes: IntArray
    values: FloatArray
    biases: FloatArray
    max_bias: float
    whole: bool
    slacks: FloatArray
    n_cuts: int

    @property
    def n_pieces(self) -> int:
        """The number of pieces, K + 1."""
        return len(self.sizes)

    @property
    def shares(self) -> FloatArray:
        """The share of the biases in [-r, r] for which each piece is the best, (K + 1,)."""
        ends = np.concatenate([[-self.max_bias], self.breakpoints, [self.max_bias]])
        if self.max_bias == 0.0:
            return np.ones(1)
        return np.asarray(np.diff(ends) / (2.0 * self.max_bias))

    def pieces(self, numbers: ArrayLike) -> IntArray:
        """Return the labellings (m, N) of some pieces, given by their numbers (m,)."""
        chosen = as_integers(numbers, "numbers", below=self.n_pieces)
        if chosen.ndim != 1:
            raise ValueError(f"numbers must have shape (m,), got {chosen.shape}")
        return np.asarray(self.last >= chosen[:, None]).astype(np.int64)

    def piece_of(self, bias: float) -> int:
        """Return the number of the best piece for a bias, with fewer ones at a breakpoint.

        If a cut was made for exactly this bias, the piece that it found is returned, so that the
        rounding of breakpoints does not matter. So the piece for bias 0 is the answer of
        ``solve_map``.
        """
        b = as_number(bias, "bias")
        found = np.flatnonzero(self.biases == b)
        return int(found[0] if found.size else np.searchsorted(self.breakpoints, b, side="right"))

    def labeling(self, bias: float) -> IntArray:
        """Return the best labelling (N,) for a bias in [-max_bias, max_bias].

        If several labellings are best, it is the one with the fewest ones, as in ``solve_map``. At
        a breakpoint, the best labelling with the most ones is the piece before it.
        """
        b = as_number(bias, "bias")
        if not -self.max_bias <= b <= self.max_bias:
            raise ValueError(
                f"bias must lie in [-max_bias, max_bias] of the path, where max_bias is "
                f"{self.max_bias:g}, got {b:g}"
            )
        found: IntArray = self.pieces([self.piece_of(b)])[0]
        return found

    @property
    def probabilities(self) -> FloatArray:
        """The share of the biases for which each variable is 1, (N,)."""
        ones = np.concatenate([[0.0], np.cumsum(self.shares)])
        return np.asarray(np.minimum(ones[self.last + 1], 1.0))

    @property
    def probability_gaps(self) -> FloatArray:
        """The largest error of ``probabilities`` compared with those of the complete path, (N,).

        Labellings are nested, so a variable with the same label at two biases has it in between. If
        ``whole``, the errors are 0 up to rounding.
        """
        if self.max_bias == 0.0:
            return np.zeros(len(self.last))
        slacks = np.concatenate([[0.0], self.slacks, [0.0]])
        return np.asarray(slacks[self.last + 1] / (2.0 * self.max_bias))
