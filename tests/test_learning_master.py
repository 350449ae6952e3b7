"""The linear program of boosting against scipy's, whatever the order in which it grew."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from setwise.learning._boosting import _master
from setwise.learning._boosting._master import Master

TOLERANCE = 1e-7


def direct(C, n_slacks, slack, offsets, coefficients):
    K = coefficients.shape[1]
    rows = np.hstack([coefficients, -np.eye(n_slacks)[slack]])
    cost = np.concatenate([np.ones(K), np.full(n_slacks, C / n_slacks)])
    answer = linprog(cost, A_ub=rows, b_ub=-offsets, method="highs")
    assert answer.status == 0
    return answer.fun


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.sampled_from([0.5, 10.0, 1e4]))
@settings(max_examples=30)
def test_grows_in_both_directions(seed, n_slacks, C):
    rng = np.random.default_rng(seed)
    slack, offsets, A = np.zeros(1, int), np.ones(1), np.empty((1, 0))
    master = Master(C, n_slacks)
    master.add_planes(slack, offsets, A)
    for _ in range(12):
        if rng.random() < 0.5:
            r = int(rng.integers(1, 4))
            new = rng.integers(n_slacks, size=r), rng.uniform(0, 2, r)
            rows = rng.integers(-3, 4, (r, A.shape[1])) / 2
            master.add_planes(*new, rows)
            slack, offsets = np.append(slack, new[0]), np.append(offsets, new[1])
            A = np.vstack([A, rows])
        else:
            column = rng.integers(-3, 4, len(A)) / 2
            master.add_columns(column[:, None])
            A = np.column_stack([A, column])
        solution = master.solve()
        least = direct(C, n_slacks, slack, offsets, A)
        assert solution.value == pytest.approx(least, abs=TOLERANCE * max(1, C))
        check_optimality(solution, C, n_slacks, slack, offsets, A)
        if rng.random() < 0.3:
            idle = 1 + np.flatnonzero(solution.multipliers[1:] == 0)
            master.drop_planes(idle)
            used = np.setdiff1d(np.arange(len(A)), idle)
            slack, offsets, A = slack[used], offsets[used], A[used]
            assert master.solve().value == pytest.approx(least, abs=TOLERANCE * max(1, C))


def test_the_interior_point_method_comes_last():
    """Where both simplex methods fail, as they may at large C."""
    rng = np.random.default_rng(1)
    C = 1e6
    slack, offsets, A = np.zeros(20, int), rng.uniform(0, 2, 20), rng.normal(size=(20, 5))
    master = Master(C)
    master.add_planes(slack, offsets, A[:, :0])
    for column in A.T:
        master.add_columns(column[:, None])
    run = master._highs.run

    class Failing:
        def __getattr__(self, name):
            return getattr(highs, name)

        def run(self):
            if highs.getOptionValue("solver")[1] == "ipm":
                run()

    highs, master._highs = master._highs, Failing()
    solution = master.solve()
    assert highs.getOptionValue("solver")[1] == "simplex"
    least = direct(C, 1, slack, offsets, A)
    assert solution.value == pytest.approx(least, rel=1e-6)
    check_optimality(solution, C, 1, slack, offsets, A)


def check_optimality(solution, C, n_slacks, slack, offsets, A):
    """Both solutions keep to their constraints, and their values meet."""
    w, xi, multipliers, value = solution
    scale = TOLERANCE * max(1, C)
    assert (w >= 0).all()
    assert (xi >= 0).all()
    assert (multipliers >= 0).all()
    assert (xi[slack] >= offsets + A @ w - scale).all()
    assert w.sum() + C / n_slacks * xi.sum() == pytest.approx(value, abs=scale)
    assert offsets @ multipliers == pytest.approx(value, abs=scale)
    assert (-(multipliers @ A) <= 1 + scale).all()
    assert (np.bincount(slack, multipliers, n_slacks) <= C / n_slacks + scale).all()


def test_says_nothing(capfd):
    master = Master(10.0)
    master.add_planes(np.zeros(1, int), np.ones(1), np.empty((1, 0)))
    master.add_columns(np.array([[-1.0]]))
    assert master.solve().w.tolist() == [1.0]
    assert capfd.readouterr() == ("", "")


def test_a_simplex_method_that_does_not_end_is_left(monkeypatch):
    answers = []
    for least in (20_000, 1):
        monkeypatch.setattr(_master, "_STEPS", 50 if least > 1 else 0)
        monkeypatch.setattr(_master, "_LEAST_STEPS", least)
        rng = np.random.default_rng(0)
        master = Master(50.0)
        master.add_planes(np.zeros(30, int), rng.random(30), np.empty((30, 0)))
        master.add_columns(rng.normal(size=(30, 8)) - 0.3)
        answers.append(master.solve().value)
    assert answers[1] == pytest.approx(answers[0], rel=1e-7)
