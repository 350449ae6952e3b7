"""The seconds of a call per phase."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from time import perf_counter


class Timings(Mapping[str, float]):
    """A read-only mapping from phases to seconds, in the order in which the phases began.

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
    """A stopwatch that assigns the time since its last call to a phase."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._last = perf_counter()

    def __contains__(self, phase: str) -> bool:
        return phase in self._seconds

    def lap(self, phase: str) -> None:
        """Add the time since the last lap to a phase."""
        now = perf_counter()
        self._seconds[phase] = self._seconds.get(phase, 0.0) + now - self._last
        self._last = now

    def timings(self, phase: str) -> Timings:
        """End the last lap with this phase, and return all laps."""
        self.lap(phase)
        return Timings(self._seconds.items())
