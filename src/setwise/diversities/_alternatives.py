"""Lists without settings: alternatives that a person can tell apart."""

from __future__ import annotations

from setwise._foundation._arguments import as_number
from setwise._foundation._base_classes import Immutable


class Alternatives(Immutable):
    r"""What ``diverse`` makes when no diversity is given: labellings that differ visibly.

    Every two of them differ by a share of the variables, and in one connected part of at least
    another share, where such labellings are found; ``reason`` says where they are not. No labelling
    is listed twice.

    Two labels and a submodular energy: of all labellings that are best under some bias b against
    label 1, from -r to the reach r (``bias_path``), those that leave least to all the others,

    .. math:: \min_S \int_{-r}^{r} \min_{y \in S} \mathrm{Ham}(y, y_b) \, db ,

    the best labelling among them. They are nested, so this is a problem of medians on a line, which
    dynamic programming solves exactly for the labellings that were found. Where up to two cuts per
    variable are affordable (4e7 variables and edges in all, grids of about 2,500 pixels) these are
    all, so that the list is the best one with such differences and ``probabilities`` are exact up
    to rounding. On larger fields the path is followed for 2e6 variables and edges, or two cuts per
    item: variables that have one label at two biases have it in between, so ``probability_gaps``
    bound what is left out, and ``reason`` tells their largest. The integral of a list may then be
    larger by up to 2 r times the sum of these gaps than it was computed. A path with fewer
    labellings than items is followed for four times the usual reach; then the list ends.

    Other fields: greedy steps of ``DivMBest``, each with the least weight, by bisection among ten,
    for which the item differs enough. Where none does, as when every label has been listed equally
    often, the step is the best of all labellings that differ enough from those before if there are
    at most 16,384; else connected regions of the best labelling take another label, at last single
    variables. Such an item has method "candidate", no gain and the bound of the best labelling, and
    ``reason`` counts them. The list has fewer than m items only where all labellings are listed, or
    potentials forbid all others that differ from an item in one variable, as ``reason`` says.

    Parameters
    ----------
    least_difference : float
        A share of the variables, in which every two items differ.
    least_part : float
        A share of the variables, of which the largest connected part of every difference has at
        least as many.
    reach : float, optional
        r, in the units of the energy; by default the upper quartile of what the variables prefer
        one label by, seeds left out, or, where they prefer none, what their pairs weigh.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.diversities.Alternatives()
    Alternatives(least_difference=0.03, least_part=0.01)
    """

    least_difference: float
    least_part: float
    reach: float | None

    def __init__(
        self,
        least_difference: float = 0.03,
        least_part: float = 0.01,
        reach: float | None = None,
    ) -> None:
        self._set(
            least_difference=_as_share(least_difference, "least_difference"),
            least_part=_as_share(least_part, "least_part"),
            reach=None if reach is None else as_number(reach, "reach", nonnegative=True),
        )

    def __repr__(self) -> str:
        reach = "" if self.reach is None else f", reach={self.reach:g}"
        return (
            f"Alternatives(least_difference={self.least_difference:g}, "
            f"least_part={self.least_part:g}{reach})"
        )


def _as_share(value: object, name: str) -> float:
    share = as_number(value, name, nonnegative=True)
    if share > 1.0:
        raise ValueError(f"{name} must be a share of the variables, at most 1, got {share:g}")
    return share
