"""The energy of labels on a grid, and a bound, from one pass over all blocks."""

from __future__ import annotations

from math import fsum, ldexp

import numpy as np

from setwise._foundation._certificate import EPS, FEW_ROUNDINGS, relative_gap
from setwise.fields._pixels._grid import pair_slices
from setwise.inference._editing._edits import NO_SEED, Edits
from setwise.inference._editing._grid_energy import GridEnergy
from setwise.inference._editing._result import EditCertificate
from setwise.inference._editing._sliceable import (
    blocks,
    grown,
    read,
    shape_of,
    within,
)
from setwise.inference._editing._stored_labels import LabelStore

# The side of a block, by the number of axes: 2^18 voxels, a few megabytes of temporary arrays.
_SIDE = {1: 1 << 18, 2: 512, 3: 64}


def certify(energy: GridEnergy, edits: Edits, store: LabelStore, proved: bool) -> EditCertificate:
    r"""Return value and bound of the stored labels.

    Let e be the given value of a term minus its rounded value, and x the minimiser of the rounded
    energy. Then E(x) - min E is at most the sum of max(e, 0) over the terms that x incurs, plus the
    sum of max(-e, 0) over the others. Costs that were replaced by smaller decisive ones contribute
    0, because x avoids the positive ones (e > 0) and incurs the negative ones (e < 0).
    """
    summands: list[float] = []
    errors: list[float] = []
    least: list[float] = []
    for window in blocks(energy.sides, _SIDE[min(len(energy.sides), 3)]):
        ones = store.read(window)
        costs = energy.exact_costs(window)
        if (changes := edits.read(window)) is not None:
            costs = np.where(changes[1] == NO_SEED, costs + changes[0], np.inf)
        costs[np.isinf(costs)] = 0.0
        units = energy.rounded(costs)
        rounding = costs - np.ldexp(units.astype(np.float64), -energy.exponent)
        summands.append(float(costs[ones].sum()))
        errors.append(float(np.where(ones, rounding, -rounding).clip(min=0.0).sum()))
        least.append(float(costs.clip(max=0.0).sum()))
        padded = grown(window, energy.margin, energy.sides)
        labels = store.read(padded)
        inner, shape = within(window, padded), shape_of(padded)
        every = slice(0, len(energy.steps))
        for array, tail in ((energy.weights, True), (energy.reverse, False)):
            weights = np.broadcast_to(
                read(array, (every, *window)).astype(np.float64),
                (len(energy.steps), *shape_of(window)),
            )
            rounded = np.ldexp(np.rint(np.ldexp(weights, energy.exponent)), -energy.exponent)
            for k, step in enumerate(energy.steps):
                first, second = pair_slices(shape, step)
                # 1 where an edge is cut, 0 where it is not, -1 where there is no edge.
                cut = np.zeros(shape, np.int8)
                cut -= 1
                cut[first] = (labels[first] == tail) & (labels[second] != tail)
                mine = cut[inner]
                error = weights[k] - rounded[k]
                summands.append(float(weights[k][mine == 1].sum()))
                errors.append(float(error[mine == 1].clip(min=0.0).sum()))
                errors.append(float((-error[mine == 0]).clip(min=0.0).sum()))
    value, trivial = fsum(summands), fsum(least)
    gap = fsum(errors)
    if gap > 0:
        gap += FEW_ROUNDINGS * EPS * gap
    rounding_of_sums = FEW_ROUNDINGS * EPS * (abs(value) + abs(trivial))
    if not proved:
        gap = max(value - trivial, 0.0) + rounding_of_sums
    bound = value - gap
    if gap > 0:
        bound = np.nextafter(bound, -np.inf)
    return EditCertificate(
        value,
        float(bound),
        relative_gap(gap, value - trivial),
        proved and gap == 0.0,
        proved,
        ldexp(1.0, -energy.exponent),
    )
