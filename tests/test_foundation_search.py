"""The driver of searches: what a method of a few lines gets from it."""

from __future__ import annotations

from math import inf

import pytest

from setwise._foundation._clock import Deadline
from setwise._foundation._search import Control, Ending, Search, attempt, completed, drive

BY_USER = "a callback or Ctrl-C ended it"


class Halving(Search[float]):
    """Minimise x^2 by halving x, which begins at 1 and whose gap is at most x."""

    ending = "x is negligible"

    def __init__(self, *, least: float = 0.0, interrupted_in: int = 0) -> None:
        self.x, self.rounds, self.reassessed, self.finished = 1.0, 0, 0, 0
        self._least, self._interrupted_in = least, interrupted_in

    def step(self) -> bool:
        self.rounds += 1
        if self.rounds == self._interrupted_in:
            raise KeyboardInterrupt
        self.x /= 2.0
        self.gap = self.relative_gap = self.x
        return self.x <= self._least

    def progress(self, n_iter: int, seconds: float) -> float:
        return self.x

    def finish(self) -> None:
        self.finished += 1

    def reassess(self) -> None:
        self.reassessed += 1


def flags(ending: Ending[float]) -> tuple[bool, bool, bool]:
    return ending.converged, ending.interrupted, ending.expired


@pytest.mark.parametrize("tol", [0.5, 0.1, 1e-6])
def test_it_ends_in_the_first_round_within_the_tolerance(tol: float) -> None:
    search = Halving()
    ending = drive(search, Control(tol, keeps_history=True))
    assert search.x <= tol < 2.0 * search.x
    assert flags(ending) == (True, False, False)
    assert ending.reason == f"the relative gap is within tol={tol:g}"
    assert ending.history == [2.0**-k for k in range(1, ending.n_iter + 1)]
    assert (search.finished, search.reassessed) == (1, 0)


def test_rounds_are_limited() -> None:
    ending = drive(Halving(), Control(max_iter=3))
    assert (ending.n_iter, ending.reason) == (3, "max_iter=3 rounds made")
    assert flags(ending) == (False, False, False)
    assert ending.history == []


def test_a_method_that_ends_by_itself_gives_the_reason() -> None:
    ending = drive(Halving(least=0.2), Control())
    assert (ending.n_iter, ending.reason) == (3, "x is negligible")
    assert flags(ending) == (False, False, False)


def test_a_gap_that_stands_still_ends_it() -> None:
    class Flat(Halving):
        patience, ending = 4, "the gap stands still"

        def step(self) -> bool:
            super().step()
            self.gap = self.relative_gap = max(self.x, 0.25)
            return False

    ending = drive(Flat(), Control())
    assert (ending.n_iter, ending.reason) == (6, "the gap stands still")
    assert flags(ending) == (False, False, False)


def test_a_callback_ends_it_and_hears_every_round() -> None:
    search, heard = Halving(), []

    def stop(x: float) -> bool:
        heard.append(x)
        return x < 0.2

    ending = drive(search, Control(callback=stop))
    assert heard == [0.5, 0.25, 0.125]
    assert (ending.n_iter, ending.reason) == (3, BY_USER)
    assert flags(ending) == (False, True, False)
    assert search.reassessed == 1


def test_a_callback_that_stops_a_finished_search_interrupts_nothing() -> None:
    for search, tol in ((Halving(), 0.2), (Halving(least=0.2), 0.0)):
        ending = drive(search, Control(tol, callback=lambda x: x < 0.2))
        assert not ending.interrupted
        assert search.reassessed == 0


def test_control_c_needs_an_answer() -> None:
    search = Halving(interrupted_in=3)
    ending = drive(search, Control())
    assert (ending.n_iter, search.x, ending.reason) == (2, 0.25, BY_USER)
    assert flags(ending) == (False, True, False)
    assert search.reassessed == 1
    with pytest.raises(KeyboardInterrupt):
        drive(Halving(interrupted_in=1), Control())
    started = Halving(interrupted_in=1)
    started.has_answer = True
    assert drive(started, Control()).n_iter == 0


def test_the_time_limit_waits_for_an_answer_and_is_no_interrupt() -> None:
    for begun, rounds in ((False, 1), (True, 0)):
        search = Halving()
        search.has_answer = begun
        ending = drive(search, Control(deadline=Deadline.of(0.0, armed=False)))
        assert (ending.n_iter, ending.reason) == (rounds, "time_limit of 0 s reached")
        assert flags(ending) == (False, False, True)
        assert ending.cut_short


def test_an_interrupted_proof_keeps_the_answer() -> None:
    class Proved(Halving):
        def finish(self) -> None:
            raise KeyboardInterrupt

    ending = drive(Proved(), Control(max_iter=2))
    assert (ending.n_iter, ending.reason) == (2, BY_USER)
    assert flags(ending) == (False, True, False)


def test_inner_searches_hand_back_complete_answers_only() -> None:
    def interrupted() -> float:
        raise KeyboardInterrupt

    assert attempt(lambda: 3.0) == (3.0, False)
    assert attempt(interrupted) == (None, True)
    whole = Ending(1, True, False, False, "", [])
    assert completed(whole) is whole
    assert completed(inf) == inf
    with pytest.raises(KeyboardInterrupt):
        completed(Ending(1, False, True, False, "", []))
