"""Bounds of the relaxation for a sequence of fields that differ in a few terms."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise._foundation._search import attempt
from setwise.fields._field import Field
from setwise.inference._conditioning._conditioned import Sums
from setwise.inference._map._convex import CERTIFYING_PASSES
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapResult
from setwise.inference._relaxation._block_groups import SIMPLEX, Group
from setwise.inference._relaxation._cooling import begin, stages
from setwise.inference._relaxation._projected_logits import Descent
from setwise.inference._relaxation._relaxation import Relaxation

# The largest number of passes over the relaxation of a later field; the first field has the number
# of any bound. Both are rarely reached, and only for fields on which the gap closes slowly. With a
# quarter of the number, gaps are up to a quarter larger.
_PASSES_NEXT = 30
# _LOOK is the number of passes between two evaluations of the bound. The search continues while
# these passes close at least the share _CLOSES of the gap. With _LOOK = 1 it ends too early, with
# gaps up to a half larger. With 12 it makes up to three times as many passes, for gaps smaller by a
# fiftieth. Four times _CLOSES saves a fifth of the passes and leaves gaps up to a twentieth larger.
_LOOK, _CLOSES = 3, 0.02


class CarriedBound:
    """Bounds on the least energies of fields that share most of their terms.

    The relaxation of the first field is cooled. Later ones start from its blocks for groups of
    terms that are equal (costs up to their scale), at the final temperature, so that a few passes
    are enough. They end when three passes close less than a fiftieth of the gap.
    """

    def __init__(self) -> None:
        self._blocks: dict[bytes, FloatArray] = {}
        self._temperature: float | None = None
        self._descent: Descent | None = None

    def improve(self, field: Field, result: MapResult, options: MapOptions) -> MapResult:
        """Return the result with the bound of the relaxation, if that is better."""
        bound, interrupted = attempt(self._descend, field, result, options)
        descent, self._descent = self._descent, None
        if descent is None:  # the search ended before its first pass
            return options.improved(result, result.bound, interrupted, Sums(0.0))
        if bound is None:  # the passes were interrupted; the bound is valid after every pass
            bound = max(result.bound, min(descent.best_bound, result.value))
        return options.improved(result, bound, interrupted, Sums(descent.magnitude()))

    def _descend(self, field: Field, result: MapResult, options: MapOptions) -> float:
        """Make passes over the relaxation, and return the better of its bound and the result's."""
        value, bound = result.value, result.bound
        relaxation = Relaxation.below(field)
        if self._temperature is None:
            self._descent = descent = begin(relaxation, options.n_threads)
            for stage in stages(descent, CERTIFYING_PASSES):
                bound = max(bound, min(stage.bound, value))
                if options.close_enough(value, bound) or stage.slack <= 0.05 * (value - bound):
                    break
            self._temperature = descent.temperature
        else:
            self._descent = descent = Descent(relaxation, self._temperature, options.n_threads)
            self._restore(descent, relaxation)
            while descent.n_iter < _PASSES_NEXT and not options.close_enough(value, bound):
                for _ in range(_LOOK):
                    descent.sweep()
                before, bound = bound, max(bound, min(descent.best_bound, value))
                if descent.n_iter > _LOOK and bound - before <= _CLOSES * (value - bound):
                    break
        self._store(descent, relaxation)
        return bound

    def _store(self, descent: Descent, relaxation: Relaxation) -> None:
        blocks = descent.blocks()
        parts = _parts(relaxation.groups, len(blocks))
        self._blocks = {key: blocks[place] / scale for key, (place, scale) in parts.items()}

    def _restore(self, descent: Descent, relaxation: Relaxation) -> None:
        blocks = descent.blocks()
        for key, (place, scale) in _parts(relaxation.groups, len(blocks)).items():
            if key in self._blocks:
                blocks[place] = scale * self._blocks[key]
        descent.set_blocks(blocks)


def _parts(groups: list[Group], size: int) -> dict[bytes, tuple[slice, float]]:
    """Return the positions of each group's blocks, keyed by the group, and their scale.

    The blocks of a cost are those of a unit cost times the scale. For all other groups the scale is
    1.
    """
    parts: dict[bytes, tuple[slice, float]] = {}
    end = 0
    for group in groups:
        n, slots = len(group.variables), max(len(group.slots), 1)
        start, end = end, end + n * slots
        if group.kind == SIMPLEX:
            for k, (slot, cost) in enumerate(zip(group.slots, group.parameters, strict=True)):
                place = slice(start + k * n, start + (k + 1) * n)
                parts[repr(slot).encode()] = place, float(cost)
        else:
            arrays = [group.variables, group.starts, group.parameters, group.own]
            # Other kinds of terms may have the same numbers.
            key = repr((group.kind, group.slots)).encode()
            key += b"".join(np.asarray(array).tobytes() for array in arrays)
            parts[key] = slice(start, end), 1.0
    return parts if end == size else {}
