"""Where the time of a call went, by the names of its phases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from time import perf_counter


class Timings(Mapping[str, float]):
    """Seconds by the name of a phase, in the order in which the phases began. Read-only.

    Examples
    --------
    >>> import setwise as sw
    >>> best = sw.solve_map(sw.fields.Field([[0.0, 1.0], [2.0, 0.0]]))
    >>> list(best.timings), all(seconds >= 0.0 for seconds in best.timings.values())
    (['set-up', 'search', 'answer'], True)
    """

    __slots__ = ("_seconds",)

    def __init__(self, seconds: Iterable[tuple[str, float]] = ()) -> None:
        self._seconds = dict(seconds)

    def __getitem__(self, phase: str) -> float:
        return self._seconds[phase]

    def __iter__(self) -> Iterator[str]:
        return iter(self._seconds)

    def __len__(self) -> int:
        return len(self._seconds)

    @property
    def total(self) -> float:
        """The seconds of all phases."""
        return sum(self._seconds.values())

    def __repr__(self) -> str:
        phases = ", ".join(f"{phase} {seconds:.3g} s" for phase, seconds in self.items())
        return f"Timings({phases})"


class Stopwatch:
    """Gives the time since it was last looked at to a phase."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._last = perf_counter()

    def __contains__(self, phase: str) -> bool:
        return phase in self._seconds

    def lap(self, phase: str) -> None:
        """What has passed since the last lap was this phase, or more of it."""
        now = perf_counter()
        self._seconds[phase] = self._seconds.get(phase, 0.0) + now - self._last
        self._last = now

    def timings(self, phase: str) -> Timings:
        """The laps, the last of which ends now."""
        self.lap(phase)
        return Timings(self._seconds.items())
