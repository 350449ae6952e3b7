"""All best labellings of two labels over a bias for one of them."""

from __future__ import annotations

from setwise._foundation._arguments import as_count, as_number
from setwise.fields._field import Field, as_field
from setwise.inference._diverse._path._bias_cuts import BiasCuts
from setwise.inference._diverse._path._nested_path import BiasPath

# The default and largest number of cuts of a path, which is usually larger than its number of
# breakpoints.
MOST_CUTS = 1 << 16


def bias_path(
    field: Field,
    *,
    max_bias: float | None = None,
    resolution: float = 0.0,
    max_cuts: int = MOST_CUTS,
    n_jobs: int | None = None,
) -> BiasPath:
    r"""Compute all best labellings of two labels for biases against label 1 in [-r, r].

    :math:`\min_y E(y) + b\,|y|` is concave and piecewise linear in b, and for a submodular E its
    minimisers are nested. Between two labellings of the path the next cut is made at the bias where
    their lines cross. If it finds no lower energy, they are neighbours (Eisner and Severance,
    1976). Variables with the same label in both are fixed, so that cuts become smaller and the sets
    are exactly nested. K breakpoints need at most 2 K + 3 cuts. Where several labellings are
    optimal, ``labeling`` returns the one with the fewest ones, as ``solve_map`` does.

    Parameters
    ----------
    field : Field
        A field of two labels, with potentials that a cut supports.
    max_bias : float, optional
        The largest bias r, in the units of the energy. By default the upper quartile of
        :math:`|u_{i1} - u_{i0}|` over the variables without a forbidden label or a seed: a bias
        that exceeds this difference at three of four variables. If all differences are 0, as with
        seeds only, it is the mean weight of a variable's pairs.
    resolution : float
        A share of the variables: two labellings that differ in at most this share count as
        neighbours. 0 finds every breakpoint.
    max_cuts : int
        The largest number of cuts, at least 3; the largest differences are searched first.
    n_jobs : int, optional
        The number of threads for cuts of large fields of pairs; None for all cores. The answer does
        not depend on it.

    Returns
    -------
    BiasPath
        ``breakpoints``, ``last``, ``sizes``, ``values``; ``labeling(bias)``.

    Raises
    ------
    KeyboardInterrupt
        At Ctrl-C.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> rng = np.random.default_rng(0)
    >>> field = sw.fields.Field(rng.normal(size=(600, 2)))
    >>> field = field + sw.fields.Potts(sw.fields.grid_edges((20, 30)), 0.5)
    >>> path = sw.inference.bias_path(field)
    >>> bool((path.labeling(0.0) == sw.solve_map(field).labels).all()), path.whole
    (True, True)
    """
    field = as_field(field)
    share = as_number(resolution, "resolution", nonnegative=True)
    if share > 1.0:
        raise ValueError(f"resolution must be a share of the variables, at most 1, got {share:g}")
    most = as_count(max_cuts, "max_cuts", least=3, most=MOST_CUTS)
    cuts = BiasCuts(field, n_jobs)
    r = (
        cuts.default_max_bias()
        if max_bias is None
        else as_number(max_bias, "max_bias", nonnegative=True)
    )
    return cuts.path(r, share * field.n_variables, most)
