"""The default diversity, which needs no settings: alternatives that differ visibly."""

from __future__ import annotations

from setwise._foundation._arguments import as_number
from setwise._foundation._base_classes import Immutable


class Alternatives(Immutable):
    r"""The default of ``diverse`` without a diversity: labellings that differ visibly.

    Every two items differ in at least a share of the variables, and in one connected part of at
    least another share, if such labellings are found; otherwise ``reason`` says that they were not.
    No labelling is listed twice.

    For two labels and a submodular energy, the items are chosen among all labellings that are
    optimal under some bias b against label 1, from -r to r = ``max_bias`` (``bias_path``), and
    minimise

    .. math:: \min_S \int_{-r}^{r} \min_{y \in S} \mathrm{Ham}(y, y_b) \, db ,

    where the best labelling is one of them. The labellings are nested, so this is a k-median
    problem on a line, which dynamic programming solves exactly for the labellings that were found.
    If up to two cuts per variable are affordable (4e7 variables and edges in total, grids of about
    2,500 pixels), all labellings are found, so that the list is the best one with such differences
    and ``probabilities`` are exact up to rounding. On larger fields the path is followed for 2e6
    variables and edges, or two cuts per item. A variable with the same label at two biases has it
    in between too, so ``probability_gaps`` bound the error, and ``reason`` reports the largest of
    them. The integral of a list may then exceed its computed value by up to 2 r times the sum of
    these gaps. A path with fewer labellings than items is followed up to four times the default
    ``max_bias``; then the list ends.

    For other fields, greedy steps of ``DivMBest`` are made, each with the least of ten weights,
    found by bisection, for which the item differs enough. If there is none, for instance because
    every label has been listed equally often, the step takes the best of all labellings that differ
    enough from the earlier items, if there are at most 16,384 labellings. Otherwise connected
    regions of the best labelling, or finally single variables, take another label. Such an item has
    method "candidate", no gain and the bound of the best labelling, and ``reason`` counts them. The
    list has fewer than m items only if all labellings are listed, or if potentials forbid all
    others that differ from an item in one variable; ``reason`` says so.

    Parameters
    ----------
    least_difference : float
        The smallest share of the variables in which every two items differ.
    least_part : float
        The smallest share of the variables in the largest connected part of every difference.
    max_bias : float, optional
        r, in the units of the energy. By default it is the upper quartile of the differences of the
        variables' unaries, without seeds, or the weight of their pairs if all differences are 0.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.diversities.Alternatives()
    Alternatives(least_difference=0.03, least_part=0.01)
    """

    least_difference: float
    least_part: float
    max_bias: float | None

    def __init__(
        self,
        least_difference: float = 0.03,
        least_part: float = 0.01,
        max_bias: float | None = None,
    ) -> None:
        self._set(
            least_difference=_as_share(least_difference, "least_difference"),
            least_part=_as_share(least_part, "least_part"),
            max_bias=None
            if max_bias is None
            else as_number(max_bias, "max_bias", nonnegative=True),
        )

    def __repr__(self) -> str:
        max_bias = "" if self.max_bias is None else f", max_bias={self.max_bias:g}"
        return (
            f"Alternatives(least_difference={self.least_difference:g}, "
            f"least_part={self.least_part:g}{max_bias})"
        )


def _as_share(value: object, name: str) -> float:
    share = as_number(value, name, nonnegative=True)
    if share > 1.0:
        raise ValueError(f"{name} must be a share of the variables, at most 1, got {share:g}")
    return share
