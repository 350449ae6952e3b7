"""Lists without settings: alternatives that a person can tell apart."""

from __future__ import annotations

from setwise._foundation._arguments import as_number
from setwise._foundation._immutable import Immutable


class Alternatives(Immutable):
    r"""What ``diverse`` makes when no diversity is given: labellings that differ visibly.

    Every two of them differ by a share of the variables, and in one connected part of at least
    another share, where such labellings exist; ``reason`` says where they do not.

    Two labels and a submodular energy: of all labellings that are best under some bias b against
    label 1, from -r to the reach r (``bias_path``), those that leave least to all the others,

    .. math:: \min_S \int_{-r}^{r} \min_{y \in S} \mathrm{Ham}(y, y_b) \, db ,

    the best labelling among them. They are nested, so this is a problem of medians on a line, and
    exact by dynamic programming. Other fields: greedy steps of ``DivMBest``, each with the least
    weight, by bisection, for which the item differs enough.

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
