"""SetClassifier: threads, fits that end early, and what is told meanwhile."""

import sys

import numpy as np
import pytest
from set_classifier_problem import GROUPS, X, Y, n, objective, p, value_and_bound, y
from sklearn.exceptions import ConvergenceWarning

from setwise import SetClassifier
from setwise.losses import SetLoss


@pytest.mark.parametrize("truth", [Y, y], ids=["rows", "groups"])
def test_the_number_of_threads_changes_no_bit(truth, monkeypatch):
    """Shards of some dozen scores, so that there is work to share."""
    monkeypatch.setattr("setwise.estimators._sets._set_risk._SHARD_SCORES", 16)
    groups = None if truth.ndim == 2 else GROUPS
    one = SetClassifier(tol=1e-4).fit(X, truth, groups=groups)
    for n_jobs in (1, 2, 3, -1):
        model = SetClassifier(tol=1e-4, n_jobs=n_jobs).fit(X, truth, groups=groups)
        assert np.array_equal(model.coef_, one.coef_)
        assert np.array_equal(model.intercept_, one.intercept_)
        assert np.array_equal(model.history_.dual, one.history_.dual)


def test_a_fit_made_again_is_the_same_to_the_last_bit():
    """Also where the solver gives up on a program: what it leaves then must not be old memory."""
    first = SetClassifier(tol=1e-6).fit(X, y)
    for size in range(1, 200, 20):
        memory = np.full(size, np.nan)
        del memory
        assert np.array_equal(SetClassifier(tol=1e-6).fit(X, y).coef_, first.coef_)


def test_shards_change_nothing_but_rounding(monkeypatch):
    whole = value_and_bound(SetClassifier(tol=1e-6).fit(X, y, groups=GROUPS))[0]
    for size in (1, 7, 64):
        monkeypatch.setattr("setwise.estimators._sets._set_risk._SHARD_SCORES", size)
        model = SetClassifier(tol=1e-6).fit(X, y, groups=GROUPS)
        assert value_and_bound(model)[0] == pytest.approx(whole, rel=3e-6)


def assert_best_so_far(model, rounds):
    """The fit ended early and without a warning: a model, and a gap that says how good it is."""
    assert model.n_iter_ == rounds
    assert model.gap_ > 1e-3
    value, bound = value_and_bound(model)
    assert value == pytest.approx(objective(model, X, Y), rel=1e-9)
    assert bound <= value_and_bound(SetClassifier(model.loss).fit(X, Y))[0]
    assert model.predict(X).shape == (n, p)
    assert value < model.history_.primal[0]


def test_a_callback_that_returns_true_leaves_the_best_model_so_far():
    seen = []

    def callback(progress):
        seen.append(progress.n_iter)
        return progress.n_iter == 4

    assert_best_so_far(SetClassifier().fit(X, Y, callback=callback), rounds=4)
    assert seen == [1, 2, 3, 4]


def test_control_c_leaves_the_best_model_so_far():
    """It comes while the loss is being computed in round 5."""
    rounds = []

    def loss(mistakes, positive):
        if len(rounds) == 4:
            raise KeyboardInterrupt
        return float(np.sqrt(mistakes.sum()))

    custom = SetLoss(loss, submodular=True, increasing=True)
    model = SetClassifier(custom).fit(X, Y, callback=rounds.append)
    rounds.clear()
    assert_best_so_far(model, rounds=4)


@pytest.mark.parametrize("verbose", [False, True])
def test_control_c_in_the_callback(verbose):
    def callback(progress):
        if progress.n_iter == 4:
            raise KeyboardInterrupt

    assert_best_so_far(SetClassifier(verbose=verbose).fit(X, Y, callback=callback), rounds=4)


def test_control_c_before_there_is_a_model():
    def loss(mistakes, positive):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SetClassifier(SetLoss(loss, submodular=True, increasing=True)).fit(X, Y)


def test_too_few_rounds_are_a_warning():
    sentence = r"SetClassifier stopped after 2 rounds at a relative gap of .*, above tol=0.001: "
    with pytest.warns(ConvergenceWarning, match=sentence) as caught:
        model = SetClassifier(max_iter=2).fit(X, Y)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.n_iter_ == 2
    assert model.gap_ > 1e-3


def test_verbose_draws_a_bar_on_stderr(capsys, monkeypatch):
    pytest.importorskip("rich", reason="without rich there are plain lines, tested below")
    monkeypatch.setenv("FORCE_COLOR", "1")  # as if stderr were a terminal
    monkeypatch.setenv("COLUMNS", "160")
    model = SetClassifier(verbose=True).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == ""
    assert f"round {model.n_iter_}, relative gap" in err


def test_verbose_prints_lines_where_there_is_no_rich(capsys, monkeypatch):
    for name in ("rich", "rich.console", "rich.progress"):
        monkeypatch.setitem(sys.modules, name, None)
    seen = []
    SetClassifier(verbose=True).fit(X, Y, callback=seen.append)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0].startswith("round 1: value ")
    assert [line.split(":")[0] for line in lines[:3]] == ["round 1", "round 2", "round 4"]
    assert len(seen) >= len(lines)


def test_silence_is_the_default(capsys):
    SetClassifier().fit(X, Y)
    assert capsys.readouterr() == ("", "")
