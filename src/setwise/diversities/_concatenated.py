"""Lists under several diversities, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from setwise._foundation._arguments import as_count, as_list
from setwise._foundation._base_classes import Immutable
from setwise.diversities._base import Diversity, as_diversities


class Concatenated(Immutable):
    r"""Several lists, each with its own diversity, one after the other.

    ``diverse`` finds the best labelling once, then for each diversity the items that follow it, and
    concatenates the lists. No single score is maximised, so there is no guarantee for the whole
    list; each step has its gap.

    Parameters
    ----------
    parts : sequence of Diversity
        At least one.
    shares : sequence of int, optional
        The number of items that each part adds to the common first item; their sum is m - 1. By
        default m - 1 is divided as evenly as possible, with larger shares first.

    Examples
    --------
    >>> import setwise as sw
    >>> both = sw.diversities.Concatenated(
    ...     [sw.diversities.DivMBest(0.1), sw.diversities.HammingBall(2.0, 0.05)]
    ... )
    >>> both.shares_of(6)
    [3, 2]
    """

    parts: tuple[Diversity, ...]
    shares: tuple[int, ...] | None

    def __init__(self, parts: Iterable[Diversity], shares: Sequence[int] | None = None) -> None:
        checked = as_diversities(parts, "parts")
        if shares is not None:
            shares = tuple(
                as_count(share, "shares") for share in as_list(shares, "shares", "integers")
            )
            if len(shares) != len(checked):
                raise ValueError(
                    f"shares must have an entry for each of the {len(checked)} parts, "
                    f"got {len(shares)}"
                )
        self._set(parts=checked, shares=shares)

    def shares_of(self, m: int) -> list[int]:
        """Return the number of items that each part adds to the first one; their sum is m - 1."""
        rest = as_count(m, "m", least=1) - 1
        if self.shares is not None:
            if sum(self.shares) != rest:
                raise ValueError(f"shares must sum to m - 1 = {rest}, got {sum(self.shares)}")
            return list(self.shares)
        each, more = divmod(rest, len(self.parts))
        return [each + (k < more) for k in range(len(self.parts))]

    def _shares_of(self, m: int) -> list[tuple[Diversity, int]]:
        """Return each part with the number of items that it adds to the first one."""
        return list(zip(self.parts, self.shares_of(m), strict=True))

    def _obstacle(self) -> str | None:
        """Return why the list has no guarantee."""
        return "concatenated lists maximise no score"

    def __repr__(self) -> str:
        shares = "" if self.shares is None else f", shares={list(self.shares)}"
        return f"Concatenated({list(self.parts)}{shares})"
