"""Scheduling of a drawing's jobs: a preview, then the proved mask, then the rest when idle."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import partial
from threading import Event as Signal
from threading import Lock
from time import monotonic, perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from setwise import _core
from setwise._foundation._threads import PAUSE
from setwise.app._drawing._answers import (
    Alternative,
    AlternativeList,
    Event,
    Failed,
    GuaranteedMasks,
    MaskAnswer,
    UncertaintyMap,
    Working,
    difference_in_words,
    uncertain_regions,
)
from setwise.app._drawing._drawing import Drawing
from setwise.app._drawing._levels import (
    LevelSolution,
    State,
    Tilt,
    enlarged,
    factor_for,
    search_nbytes,
)
from setwise.app._drawing._memory import BACKGROUND_SECONDS
from setwise.images._segment import MARGINALS_TOL, N_ALTERNATIVES, TOL
from setwise.inference._diverse._diverse import diverse
from setwise.inference._diverse._result import DiverseProgress
from setwise.inference._map._solve_map import solve_map
from setwise.inference._marginals._marginals import marginals

ALTERNATIVES, UNCERTAINTY = "alternatives", "uncertainty"
_PREVIEW, _MASK, _BACKGROUND, _PROOF = "preview", "mask", "background", "proof"
_GUARANTEE = "guarantee"
# The most pixels for which alternatives and uncertainty are computed at full size, after a reduced
# size. Such jobs end within BACKGROUND_SECONDS: alternatives of 1,000,000 pixels took 6 s of
# processor time, and the marginals of 260,000 pixels took 12 s.
_MOST_FOR_ALTERNATIVES, _MOST_FOR_UNCERTAINTY = 1_200_000, 320_000
# About the size of pictures for alternatives of more than two labels, which take one search per
# item: with 50,000 pixels, many lists do not end within BACKGROUND_SECONDS.
_PIXELS_OF_MANY_LABELS = 20_000
# The time limit of a mask in seconds. Without a mask there is nothing to show, so the limit is far
# longer than the few seconds that a picture of WORKING_PIXELS takes. Not tuned.
MASK_SECONDS = 60.0


class WorkQueue(Protocol):
    """The protocol of a queue of jobs that threads run; ``Workers`` implements it."""

    def submit(self, owner: Work, job: str, *, urgent: bool) -> None:
        """Let a thread call ``owner.run(job)``. Raise ``RuntimeError`` after the end."""

    def drop(self, owner: Work) -> list[str]:
        """Remove the jobs of an owner that have not begun, and return their names."""


class Work:
    """The jobs that keep the answers of one drawing up to date and pass them to ``emit``.

    At most three jobs run at a time: the preview of a large picture, the mask at full size, and one
    background job (a proof, alternatives or uncertainty). A job runs again if the drawing has
    changed since it began. Results for old versions are dropped. A change cancels slow background
    jobs, but not a cut, which is the warm start of the next one. ``pause`` ends all jobs. ``emit``
    may be called from any thread.
    """

    def __init__(self, drawing: Drawing, pool: WorkQueue, emit: Callable[[Event], None]) -> None:
        self.drawing = drawing
        self._pool = pool
        self._emit = emit
        self._lock = Lock()
        self._busy: set[str] = set()
        self._again: set[str] = set()
        self._wanted: set[str] = {ALTERNATIVES}
        self._closed = self._paused = self._live = False
        self._preview_delay = 0.0  # the seconds that a preview waits for the full mask
        self._full_mask_found = Signal()
        self.answer: MaskAnswer | None = None
        self.alternatives: AlternativeList | None = None
        self.uncertainty: UncertaintyMap | None = None
        self.guaranteed: GuaranteedMasks | None = None
        self._done: dict[str, int] = {}

    # ---- calls of the host

    def changed(self, *, live: bool = False) -> None:
        """Start the jobs for a changed drawing, but only the mask while a stroke is ``live``."""
        self._live = live
        if self.drawing.quick_factor > 1:
            self._full_mask_found.clear()
            self._start(_PREVIEW)
            if self._preview_delay == 0.0:
                return  # the preview starts the mask
        self._start(_MASK)

    def want(self, what: str, wanted: bool) -> None:
        """Set whether alternatives or uncertainty are computed."""
        if what not in (ALTERNATIVES, UNCERTAINTY):
            raise ValueError(
                f"what must be {ALTERNATIVES} or {UNCERTAINTY}, got {str(what)[:40]!r}"
            )
        with self._lock:
            (self._wanted.add if wanted else self._wanted.discard)(what)
        if wanted:
            self._start(_MASK)

    def take(self, number: int) -> None:
        """Choose an alternative by its number. Raise a ``ValueError`` if there is none."""
        listed = self.alternatives
        if listed is None or not 0 <= number < len(listed.items):
            raise ValueError(f"there is no alternative {number + 1}")
        if listed.version != self.drawing.version:
            raise ValueError("the alternatives are of an older drawing")
        if number:
            self.drawing.take(listed.items[number].tilt)

    def mask(self) -> NDArray[np.uint8]:
        """Return the labels of the present drawing, from the last answer if it is up to date."""
        answer, state = self.answer, self.drawing.state()
        if answer is not None and answer.version == state.version and answer.factor == 1:
            return answer.labels
        end = monotonic() + MASK_SECONDS

        def check() -> None:
            if monotonic() > end:
                raise TimeoutError(f"the mask takes more than {MASK_SECONDS:.0f} seconds")

        return self._best(state, check).labels

    def pause(self) -> None:
        """End all jobs, because there is no watcher."""
        with self._lock:
            self._paused = True
            self._busy.difference_update(self._pool.drop(self))
            self._again.clear()

    def resume(self) -> None:
        """Allow jobs again. ``changed`` starts them."""
        with self._lock:
            self._paused = self._closed

    def close(self) -> None:
        """End all jobs and emit no more events."""
        self._closed = True
        self.pause()
        self._emit = _ignore  # breaks a reference cycle with the receiver

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    @property
    def idle(self) -> bool:
        """Whether no job runs or waits."""
        with self._lock:
            return not self._busy

    # ---- jobs

    def _start(self, job: str) -> None:
        with self._lock:
            if self._paused:
                return
            if job in self._busy:
                self._again.add(job)
                return
            self._busy.add(job)
        self._submit(job)

    def _submit(self, job: str) -> None:
        try:
            self._pool.submit(self, job, urgent=job != _BACKGROUND)
        except RuntimeError:  # the pool is shut down
            with self._lock:
                self._busy.discard(job)

    def run(self, job: str) -> None:
        """Run a job. This is called by a thread of the pool."""
        version = self.drawing.version
        try:
            if not self._paused:
                {_PREVIEW: self._preview, _MASK: self._solve, _BACKGROUND: self._run_background}[
                    job
                ]()
        except CancelledError:
            pass
        except (MemoryError, TimeoutError) as error:
            self._publish(Failed(version, str(error)))
        except Exception as error:
            self._publish(Failed(version, f"{type(error).__name__}: {error}"))
        if job == _PREVIEW:
            self._start(_MASK)
        with self._lock:
            more = job in self._again and not self._paused
            self._again.discard(job)
            if not more:
                self._busy.discard(job)
        if more:
            self._submit(job)

    def _preview(self) -> None:
        """Compute the preview of a large picture."""
        factor = self.drawing.quick_factor
        if not self.drawing.empty:
            begin, state = perf_counter(), self.drawing.state()
            known = self.answer is not None and self.answer.version == state.version
            if known or self._full_mask_found.wait(self._preview_delay) or self._is_old(state):
                return  # the full mask was faster, or the drawing has changed
            check = self._until(MASK_SECONDS, "the preview")
            found = self._solved(state, check, factor)
            self._publish(_as_answer(state, found, factor, perf_counter() - begin, final=False))

    def _solve(self) -> None:
        """Compute the best mask and its proof, and then start the background jobs."""
        state = self.drawing.state()
        if self.drawing.empty:
            self.answer = None
            return
        live = self._live
        if live and self.drawing.quick_factor > 1 and (len(state.labels) > 2 or state.boxes):
            # A full mask takes more than one cut, so only a preview is computed while the pen
            # moves.
            return
        if self.answer is None or self.answer.version != state.version or self.answer.factor > 1:
            answer = self._best(state, self._until(MASK_SECONDS, "the mask"))
            # A mask that takes less than two pauses needs no preview: the next waits for its mask.
            self._preview_delay = PAUSE if answer.seconds < 2 * PAUSE else 0.0
            self._publish(answer)
        if not live:
            self._start(_BACKGROUND)

    def _best(self, state: State, check: Callable[[], None]) -> MaskAnswer:
        """Return the mask of the picture, at a reduced size if memory is short."""
        begin = perf_counter()
        smallest = 4
        for factor in (1, 2, smallest):
            try:
                found = self._solved(state, check, factor)
            except MemoryError:
                if factor == smallest:
                    raise
                continue
            seconds = perf_counter() - begin
            if factor == 1:
                final = found.exact or len(state.labels) == 2
                return _as_answer(state, found, 1, seconds, final=final)
            labels = enlarged(found.labels, self.drawing.shape, factor).copy()
            self.drawing.release(factor)
            sure = state.marks >= 0
            labels[sure] = state.marks[sure]
            known = LevelSolution(labels, np.nan, np.nan, np.inf, False)
            return replace(_as_answer(state, known, 1, seconds, final=True), coarse=factor)
        raise AssertionError

    def _solved(self, state: State, check: Callable[[], None], factor: int) -> LevelSolution:
        with self.drawing.working_level(factor, state, check=check) as level:
            found: LevelSolution = _core.run_with_check(check, lambda: level.solve(state))
            return found

    def _run_background(self) -> None:
        """Run the first background job that is missing. The next one waits for its turn."""
        state, answer = self.drawing.state(), self.answer
        if answer is None or answer.version != state.version or answer.factor > 1 or self._live:
            return
        pieces: dict[str, Callable[[], None]] = {}
        if not answer.final:
            pieces[_PROOF] = partial(self._prove_bound, state, answer)
        if self.drawing.guarantee is not None and len(state.labels) == 2:
            pieces[_GUARANTEE] = partial(self._guarantee, state)
        for what, compute in ((UNCERTAINTY, self._map_uncertainty), (ALTERNATIVES, self._list)):
            if what in self._wanted:
                for factor in self._factors(what, state):
                    pieces[f"{what} at 1/{factor}"] = partial(compute, state, factor)
        missing = [name for name in pieces if self._done.get(name) != state.version]
        if not missing:
            return
        try:
            pieces[missing[0]]()
        finally:
            if not self._is_old(state):
                self._done[missing[0]] = state.version  # a failed job would fail again
            if len(missing) > 1:
                with self._lock:
                    self._again.add(_BACKGROUND)

    def _prove_bound(self, state: State, answer: MaskAnswer) -> None:
        """Emit the answer with the bound of the relaxation, which takes longer than the labels."""
        names = np.array(state.labels, np.uint8)
        init = np.searchsorted(names, answer.labels.ravel())
        begin = perf_counter()
        check = self._unless_changed(state, "the proof")
        try:
            with self.drawing.working_level(1, state, check=check) as level:
                best = _core.run_with_check(
                    check,
                    lambda: solve_map(
                        level.field(state),
                        init=init,
                        tol=TOL,
                        time_limit=BACKGROUND_SECONDS,
                    ),
                )
        except (MemoryError, TimeoutError):
            self._publish(replace(answer, final=True))  # the bound proved so far is valid
            return
        self._publish(
            replace(
                answer,
                labels=names[best.labels].reshape(self.drawing.shape),
                value=best.value,
                bound=best.bound,
                relative_gap=best.relative_gap,
                exact=best.exact,
                final=True,
                seconds=answer.seconds + perf_counter() - begin,
            )
        )

    def _guarantee(self, state: State) -> None:
        """Emit the inner and outer masks of the calibrated predictor; label 2 is the object."""
        check = self._unless_changed(state, "the inner and outer masks")
        model = self.drawing.guarantee
        with self.drawing.working_level(1, state, search_nbytes(2), check) as level:
            found = _core.run_with_check(check, lambda: model.predict_set([level.field(state)])[0])
            check()
            zones = np.zeros(level.n, np.uint8)
            for number, mask in ((1, found.outer), (2, found.inner)):
                if mask is not None:
                    zones[mask.ravel()] = number
            zones = zones.reshape(level.shape)
        self._publish(GuaranteedMasks(state.version, zones, found.words))

    def _list(self, state: State, factor: int) -> None:
        names = np.array(state.labels, np.uint8)
        check = self._unless_changed(state, "the list of alternatives")
        # A search for bounds stores messages.
        nbytes = search_nbytes(len(names)) * (1 if len(names) == 2 else 3)

        def grown(step: DiverseProgress) -> bool:
            self._publish(Working(state.version, ALTERNATIVES, step.n_items / N_ALTERNATIVES))
            return self._is_old(state)

        with self.drawing.working_level(factor, state, nbytes, check) as level:
            found = _core.run_with_check(
                check,
                lambda: diverse(
                    level.field(state),
                    N_ALTERNATIVES,
                    time_limit=BACKGROUND_SECONDS,
                    callback=grown,
                ),
            )
            check()
            pictures = [names[row].reshape(level.shape) for row in found.labelings]
        items = [
            Alternative(
                labels,
                float(found.values[number]),
                float(found.values[number] - found.values[0]),
                float((labels != pictures[0]).mean()),
                difference_in_words(labels, pictures[0]),
                _tilt_of(found, number, pictures, factor),
            )
            for number, labels in enumerate(pictures)
        ]
        last = self._factors(ALTERNATIVES, state)[-1]
        self._publish(AlternativeList(state.version, factor, tuple(items), factor == last))

    def _map_uncertainty(self, state: State, factor: int) -> None:
        check = self._unless_changed(state, "the uncertainty")
        nbytes = 2 * search_nbytes(len(state.labels))  # a search for marginals stores messages

        def passed(step: Any) -> bool:
            share = min(1.0, MARGINALS_TOL / max(step.relative_gap, MARGINALS_TOL))
            self._publish(Working(state.version, UNCERTAINTY, share))
            return self._is_old(state)

        with self.drawing.working_level(factor, state, nbytes, check) as level:
            found = _core.run_with_check(
                check,
                lambda: marginals(
                    level.field(state),
                    tol=MARGINALS_TOL,
                    dtype="float32",
                    # The energies of a reduced pixel are sums over its block.
                    temperature=float(factor**2),
                    time_limit=BACKGROUND_SECONDS,
                    callback=passed,
                ),
            )
            check()
            entropy = found.entropy.reshape(level.shape) / np.log(len(state.labels))
        heat = np.rint(255 * np.clip(entropy, 0.0, 1.0)).astype(np.uint8)
        self._publish(UncertaintyMap(state.version, factor, heat, uncertain_regions(entropy)))

    def _factors(self, what: str, state: State) -> list[int]:
        """Return the reduction factors of a background job, the largest first."""
        if what == ALTERNATIVES and len(state.labels) > 2:
            return [factor_for(self.drawing.shape, _PIXELS_OF_MANY_LABELS)]
        most = _MOST_FOR_ALTERNATIVES if what == ALTERNATIVES else _MOST_FOR_UNCERTAINTY
        height, width = self.drawing.shape
        quick = self.drawing.quick_factor
        return [quick] if quick == 1 or height * width > most else [quick, 1]

    # ---- versions

    def _is_old(self, state: State) -> bool:
        return self._paused or self.drawing.version != state.version

    def _until(self, seconds: float, what: str) -> Callable[[], None]:
        """Return a check that ends a job if there is no watcher, or after ``seconds``."""
        end = monotonic() + seconds

        def check() -> None:
            if self._paused:
                raise CancelledError
            if monotonic() > end:
                raise TimeoutError(f"{what} takes more than {seconds:.0f} seconds: it was ended")

        return check

    def _unless_changed(self, state: State, what: str) -> Callable[[], None]:
        """Return a check that also ends a background job when the drawing changes."""
        # A search that stops at its own time limit still needs time to return its result.
        limit = self._until(2 * BACKGROUND_SECONDS, what)

        def check() -> None:
            if self._is_old(state):
                raise CancelledError
            limit()

        return check

    def _publish(self, event: Event) -> None:
        """Emit an event, unless it is for another version of the drawing."""
        if self._paused or event.version != self.drawing.version:
            return
        match event:
            case MaskAnswer():
                if event.factor == 1:
                    self._full_mask_found.set()
                before = self.answer
                same = before is not None and before.version == event.version
                if before is not None and same and before.factor < event.factor:
                    return  # the full mask was faster than the preview
                self.answer = event
            case AlternativeList():
                self.alternatives = event
            case UncertaintyMap():
                self.uncertainty = event
            case GuaranteedMasks():
                self.guaranteed = event
        self._emit(event)


def _ignore(event: Event) -> None:
    """Drop an event."""


def _as_answer(state: State, found: Any, factor: int, seconds: float, *, final: bool) -> MaskAnswer:
    return MaskAnswer(
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
    """Return the change of costs under which an item of a list is the best labelling."""
    if number == 0:
        return Tilt()
    if found.biases is not None:
        # Rounded, so that adding it to costs is exact.
        bias = float(found.biases[number]) / factor**2
        return Tilt(bias=round(bias * 2**30) / 2**30)
    agree = sum(float((pictures[number] != other).sum()) for other in pictures[:number])
    weight = float(found.gains[number]) / max(agree, 1.0)
    return Tilt(against=tuple(pictures[:number]), weight=weight / factor**2)
