"""The least upper bound on log Z by projected logits."""

from __future__ import annotations

from dataclasses import replace

from setwise._foundation._arguments import FloatArray
from setwise.fields._field import Field
from setwise.inference._conditioning._magnitude import rounding_of_logs
from setwise.inference._marginals._search import (
    MarginalsOptions,
    MarginalsSolution,
    MeasuredSearch,
    Standing,
)
from setwise.inference._relaxation._double_precision import double_pass
from setwise.inference._relaxation._projected_logits import Descent
from setwise.inference._relaxation._relaxation import Relaxation


def projection(field: Field, options: MarginalsOptions) -> MarginalsSolution:
    r"""Minimise :math:`\sum_i \log \sum_j \exp(-s_{ij} / t)` over the base polytope, by blocks.

    With all labels but j fixed, the best block of label j is the Euclidean projection of :math:`s +
    t\,\mathrm{logit}\,p_j`, so a pass over all blocks has no step size. Passes are extrapolated,
    and a pass that raises the bound is undone. Memory is 2 G + 4 arrays of N L numbers of
    ``dtype``, where G is the number of groups of disjoint blocks (3 for a 4-connected grid and one
    layer of regions), and G more arrays for ``state``. With "float32" s lies in the base polytope
    up to rounding errors of 6e-8 of its entries. Therefore the last pass is in double precision,
    and determines the bound, the gap and the probabilities. Bounds are raised by their possible
    rounding errors, which are larger before that pass.
    """
    return options.run(_Projection(field, options))


class _Projection(MeasuredSearch):
    """Passes of projected logits, with a last pass in double precision for single precision."""

    descent: Descent

    def __init__(self, field: Field, options: MarginalsOptions) -> None:
        self._dtype = dtype = options.dtype if field.n_labels > 1 else "float64"
        tol = options.tol
        if dtype == "float32":
            # The gap is measured again in double precision, in which it may be larger than in
            # single precision.
            tol = min(tol, max(tol / 4, tol - 3e-6, 2.5e-7))
        super().__init__(options, tol)
        self._t = t = options.temperature
        self._relaxation = relaxation = Relaxation(field)
        state = _state_of(options, relaxation)
        # with one label there is nothing to sweep: the initial blocks are optimal
        blocks = None if state is None or field.n_labels == 1 else relaxation.within(state)
        self.descent = Descent(relaxation, t, options.n_threads, blocks, dtype=dtype, unit=t)
        options.watch.lap("set-up")
        self._constant = relaxation.constant / t - rounding_of_logs(field, t)
        if blocks is not None:
            self.descent.sweep()  # blocks of other weights need not lie in this base polytope
            self.descent.history, self.earlier = self.descent.history[1:], 1
        self.descent.measure()
        if self.descent.relative_gap <= tol:
            self.limit = 0
        self.begin(1)
        self._is_closed = False
        self._found: MarginalsSolution | None = None
        self._proved: MarginalsSolution | None = None

    def advance(self, due: int) -> bool:
        self.descent.sweep()
        return self.n_passes in (due, self.limit)

    def has_converged(self, tol: float) -> bool:
        return super().has_converged(tol) if self._proved is None else self._proved.converged

    def finish(self) -> None:
        if self._measured_at == self.n_passes:  # otherwise a callback ended the search
            self._conclude()

    def reassess(self) -> None:
        if not self._is_closed:
            self.descent.look_again()  # the last pass may have been undone, or not measured yet
        self._conclude()

    def standing(self) -> Standing:
        descent, t = self.descent, self._t
        lost = descent.rounding() / t
        value = descent.objective / t - self._constant + lost
        return Standing(value, descent.gap / t + lost, descent.relative_gap)

    def solution(self) -> MarginalsSolution:
        assert self._proved is not None
        return self._proved

    def _conclude(self) -> None:
        """Make the answer; in single precision, after one pass in double precision."""
        options, t = self.options, self._t
        if self._found is None:
            self._found = self._as_left()
            del self.descent  # frees memory, because the last pass needs as much
        found = self._found
        if self._dtype == "float64":
            self._proved = found
            return
        assert found.state is not None
        exact = double_pass(self._relaxation, t, found.state, options.n_threads)
        upper = exact.objective / t - self._constant + exact.rounding / t
        self._proved = replace(
            found,
            probabilities=exact.probabilities,
            upper=upper,
            gap=(exact.gap + exact.rounding) / t,
            relative_gap=exact.relative_gap,
            history=[*found.history[:-1], upper],
            converged=exact.relative_gap <= options.tol,
        )

    def _as_left(self) -> MarginalsSolution:
        """Return the answer of the last pass."""
        descent, t = self.descent, self._t
        self._is_closed = True
        descent.finish()
        blocks = descent.blocks()
        lost = descent.rounding(blocks) / t
        history = [value / t - self._constant + lost for value in descent.history]
        return MarginalsSolution(
            probabilities=descent.probabilities(),
            upper=history[-1],
            gap=descent.gap / t + lost,
            relative_gap=descent.relative_gap,
            history=history,
            state=blocks.astype(self.options.dtype, copy=False),
            converged=descent.relative_gap <= self.tol,
        )


def _state_of(options: MarginalsOptions, relaxation: Relaxation) -> FloatArray | None:
    """Return the blocks of the start, or None. Raise an error if they do not fit the field."""
    state = options.state
    if options.start is not None and state is None:
        raise ValueError("init must be a result of projection, got one without its blocks")
    size = sum(len(group.variables) * max(len(group.slots), 1) for group in relaxation.groups)
    if state is not None and state.size != size:
        raise ValueError(
            f"init must be a result with {size} block entries, got {state.size}: "
            "its field had other edges, regions or label costs"
        )
    return state
