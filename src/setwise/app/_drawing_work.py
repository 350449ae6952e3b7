"""What is computed when: a first look at once, the proved mask after it, the rest when idle."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Executor
from dataclasses import replace
from threading import Event as Signal
from threading import Lock
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from setwise import _core
from setwise.app._drawing import Drawing
from setwise.app._drawing_answers import (
    Alternative,
    AlternativeList,
    Answer,
    Doubt,
    Event,
    Failed,
    Working,
    difference_in_words,
    doubtful_regions,
)
from setwise.app._drawing_levels import Level, State, Tilt, factor_for
from setwise.inference import DiverseProgress, diverse, marginals, solve_map

R = TypeVar("R")

N_ALTERNATIVES = 6
ALTERNATIVES, DOUBT = "alternatives", "uncertainty"
# Up to so many pixels the background works at full size too, after a reduced one.
_MOST_FOR_ALTERNATIVES, _MOST_FOR_DOUBT = 1_200_000, 320_000
# Lists of more than two labels take a search an item.
_PIXELS_OF_MANY_LABELS = 20_000
_PROOF_SECONDS = 20.0
# Of a picture whose last mask took less than twice as long, a first look comes after so long.
_PATIENCE = 0.015
_PROOF_TOL, _DOUBT_TOL = 1e-3, 1e-2


class Work:
    """Keeps the answers of one drawing up to date, and tells them to ``emit``, from any thread.

    Two jobs at most are under way, side by side: the first look at a picture that is large, and
    the whole of it. Each begins anew as long as the drawing has changed since it began. What is of
    an old version is not told; of that what is slow is ended by the change itself. A cut is not:
    the next one goes on from it.
    """

    def __init__(
        self,
        drawing: Drawing,
        quick: Executor,
        slow: Executor,
        emit: Callable[[Event], None],
    ) -> None:
        self.drawing = drawing
        self._pools = {"quick": quick, "slow": slow}
        self._jobs: dict[str, Callable[[], None]] = {"quick": self._look, "slow": self._prove}
        self._emit = emit
        self._lock = Lock()
        self._busy: set[str] = set()
        self._again: set[str] = set()
        self._wanted: set[str] = {ALTERNATIVES}
        self._closed = self._live = False
        self._patience = 0.0  # a first look waits so long for the whole, which may be faster
        self._whole = Signal()
        self.answer: Answer | None = None
        self.alternatives: AlternativeList | None = None
        self.doubt: Doubt | None = None
        self._done: dict[str, int] = {}

    # ---- from the host

    def changed(self, *, live: bool = False) -> None:
        """The drawing is another one: begin. While a stroke is ``live`` its mask is enough."""
        self._live = live
        if self.drawing.quick_factor > 1:
            self._whole.clear()
            self._start("quick")
            if self._patience == 0.0:
                return  # which starts the other
        self._start("slow")

    def want(self, what: str, wanted: bool) -> None:
        """Whether alternatives, or uncertainty, are to be computed at all."""
        if what not in (ALTERNATIVES, DOUBT):
            raise ValueError(f"what must be {ALTERNATIVES} or {DOUBT}, got {str(what)[:40]!r}")
        with self._lock:
            (self._wanted.add if wanted else self._wanted.discard)(what)
        if wanted:
            self._start("slow")

    def take(self, number: int) -> None:
        """Goes on from the alternative of this number; a ``ValueError`` where there is none."""
        listed = self.alternatives
        if listed is None or not 0 <= number < len(listed.items):
            raise ValueError(f"there is no alternative {number + 1}")
        if listed.version != self.drawing.version:
            raise ValueError("the alternatives are of an older drawing")
        if number:
            self.drawing.take(listed.items[number].tilt)

    def close(self) -> None:
        """Nothing more is told or begun."""
        self._closed = True

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        with self._lock:
            return not self._busy

    # ---- jobs

    def _start(self, job: str) -> None:
        with self._lock:
            if self._closed:
                return
            if job in self._busy:
                self._again.add(job)
                return
            self._busy.add(job)
        self._submit(job)

    def _submit(self, job: str) -> None:
        try:
            self._pools[job].submit(self._run, job)
        except RuntimeError:  # the pool is shut down
            with self._lock:
                self._busy.discard(job)

    def _run(self, job: str) -> None:
        version = self.drawing.version
        try:
            self._jobs[job]()
        except CancelledError:
            pass
        except Exception as error:
            self._tell(Failed(version, f"{type(error).__name__}: {error}"))
        with self._lock:
            more = job in self._again and not self._closed
            self._again.discard(job)
            if not more:
                self._busy.discard(job)
        if more:
            self._submit(job)
        elif job == "quick":
            self._start("slow")

    def _look(self) -> None:
        """A first look at a picture so large that the whole takes longer."""
        factor = self.drawing.quick_factor
        if not self.drawing.empty:
            begin, state = perf_counter(), self.drawing.state()
            known = self.answer is not None and self.answer.version == state.version
            if known or self._whole.wait(self._patience) or self._is_old(state):
                return  # the whole was faster, or there is another stroke
            found = self.drawing.level(factor).solve(state)
            self._tell(_as_answer(state, found, factor, perf_counter() - begin, final=False))

    def _prove(self) -> None:
        """The best mask and its proof; then what is wanted beside it."""
        state, begin = self.drawing.state(), perf_counter()
        level = self.drawing.level()
        if self.drawing.empty:
            self.answer = None
            return
        live = self._live
        if live and self.drawing.quick_factor > 1 and (len(state.labels) > 2 or state.boxes):
            return  # more than one cut: a first look follows the pen
        if self.answer is None or self.answer.version != state.version or not self.answer.final:
            found = level.solve(state)
            seconds = perf_counter() - begin
            self._patience = _PATIENCE if seconds < 2 * _PATIENCE else 0.0
            final = found.exact or len(state.labels) == 2
            answer = _as_answer(state, found, 1, seconds, final=final)
            self._tell(answer)
            if not final and not live:
                self._tell(self._proved(state, level, answer))
        if live:
            return
        for what, compute in ((DOUBT, self._doubts), (ALTERNATIVES, self._list)):
            if what in self._wanted and self._done.get(what) != state.version:
                compute(state)
                self._done[what] = state.version

    def _proved(self, state: State, level: Level, answer: Answer) -> Answer:
        """The same with the bound of the relaxation, which takes longer than the labels."""
        names = np.array(state.labels, np.uint8)
        init = np.searchsorted(names, answer.labels.ravel())
        begin = perf_counter()
        best = self._unless_changed(
            state,
            solve_map,
            level.field(state),
            init=init,
            tol=_PROOF_TOL,
            time_limit=_PROOF_SECONDS,
        )
        return replace(
            answer,
            labels=names[best.labels].reshape(level.shape),
            value=best.value,
            bound=best.bound,
            relative_gap=best.relative_gap,
            exact=best.exact,
            final=True,
            seconds=answer.seconds + perf_counter() - begin,
        )

    def _list(self, state: State) -> None:
        names = np.array(state.labels, np.uint8)
        factors = self._factors(_MOST_FOR_ALTERNATIVES)
        if len(names) > 2:
            factors = [factor_for(self.drawing.shape, _PIXELS_OF_MANY_LABELS)]
        for factor in factors:
            level = self.drawing.level(factor)
            told: list[Alternative] = []

            def grown(step: DiverseProgress) -> bool:
                self._tell(Working(state.version, ALTERNATIVES, step.n_items / N_ALTERNATIVES))
                return self._is_old(state)

            field = level.field(state)
            found = self._unless_changed(state, diverse, field, N_ALTERNATIVES, callback=grown)
            pictures = [names[row].reshape(level.shape) for row in found.labelings]
            for number, labels in enumerate(pictures):
                told.append(
                    Alternative(
                        labels,
                        float(found.values[number]),
                        float(found.values[number] - found.values[0]),
                        float((labels != pictures[0]).mean()),
                        difference_in_words(labels, pictures[0]),
                        _tilt_of(found, number, pictures, factor),
                    )
                )
            self._tell(AlternativeList(state.version, factor, tuple(told), factor == factors[-1]))

    def _doubts(self, state: State) -> None:
        for factor in self._factors(_MOST_FOR_DOUBT):
            level = self.drawing.level(factor)

            def passed(step: Any) -> bool:
                share = min(1.0, _DOUBT_TOL / max(step.relative_gap, _DOUBT_TOL))
                self._tell(Working(state.version, DOUBT, share))
                return self._is_old(state)

            found = self._unless_changed(
                state,
                marginals,
                level.field(state),
                tol=_DOUBT_TOL,
                dtype="float32",
                temperature=float(factor**2),  # a small pixel's energies are those of a block
                time_limit=_PROOF_SECONDS,
                callback=passed,
            )
            entropy = found.entropy.reshape(level.shape) / np.log(len(state.labels))
            heat = np.rint(255 * np.clip(entropy, 0.0, 1.0)).astype(np.uint8)
            self._tell(Doubt(state.version, factor, heat, doubtful_regions(entropy)))

    def _factors(self, most: int) -> list[int]:
        """The sizes that the background works at: a reduced one first."""
        height, width = self.drawing.shape
        quick = self.drawing.quick_factor
        return [quick] if quick == 1 or height * width > most else [quick, 1]

    # ---- versions

    def _is_old(self, state: State) -> bool:
        return self._closed or self.drawing.version != state.version

    def _unless_changed(
        self, state: State, function: Callable[..., R], *arguments: Any, **named: Any
    ) -> R:
        """What the function says; ``CancelledError`` as soon as the drawing has changed."""

        def check() -> None:
            if self._is_old(state):
                raise CancelledError

        check()
        found: R = _core.heed(check, lambda: function(*arguments, **named))
        check()
        return found

    def _tell(self, event: Event) -> None:
        """Hands an event on, unless it is of another version than the drawing."""
        if self._closed or event.version != self.drawing.version:
            return
        match event:
            case Answer():
                if event.factor == 1:
                    self._whole.set()
                before = self.answer
                same = before is not None and before.version == event.version
                if before is not None and same and before.factor < event.factor:
                    return  # the whole was faster than the first look
                self.answer = event
            case AlternativeList():
                self.alternatives = event
            case Doubt():
                self.doubt = event
        self._emit(event)


def _as_answer(state: State, found: Any, factor: int, seconds: float, *, final: bool) -> Answer:
    return Answer(
        version=state.version,
        labels=found.labels,
        factor=factor,
        value=found.value,
        bound=found.bound,
        relative_gap=found.relative_gap,
        exact=found.exact,
        final=final,
        seconds=seconds,
        chosen=bool(state.tilts),
    )


def _tilt_of(found: Any, number: int, pictures: list[Any], factor: int) -> Tilt:
    """The prices under which an item of a list is the best labelling."""
    if number == 0:
        return Tilt()
    if found.biases is not None:
        # Rounded, so that it can be added to costs without a rounding.
        bias = float(found.biases[number]) / factor**2
        return Tilt(bias=round(bias * 2**30) / 2**30)
    agree = sum(float((pictures[number] != other).sum()) for other in pictures[:number])
    weight = float(found.gains[number]) / max(agree, 1.0)
    return Tilt(against=tuple(pictures[:number]), weight=weight / factor**2)
