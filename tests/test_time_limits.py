"""A time limit ends every long call with what it has: an answer, bounds that hold, and a reason.

No test waits: the clock moves at a chosen reading, and every poll of a kernel reads it.
"""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
import warnings
from concurrent.futures import CancelledError

import examples_of_fields  # noqa: F401  fills the registry
import examples_of_functions  # noqa: F401
import examples_of_images  # noqa: F401
import examples_of_learning
import field_registry
import numpy as np
import pytest
import reference
from counted_clock import LIMIT, counted, moments
from example_registry import EXAMPLES, resolve
from learner_registry import Svm, assert_honest, each_learner
from marginals_cases import least_upper
from sklearn.exceptions import ConvergenceWarning

import setwise as sw
from setwise import _core, learning
from setwise._foundation._clock import Deadline, Stopwatch, TimeUp, Timings
from setwise._foundation._threads import Pool
from setwise.inference._map._methods import METHODS as MAP_METHODS
from setwise.inference._marginals._methods import METHODS as MARGINALS_METHODS

SMALL = Svm(12, 3)
NAMED = "time_limit of 60 s reached"
KINDS = ("potts-on-two-labels", "potts-on-three-labels", "mixed-tables", "everything", "one-label")
KINDS += ("region-consistency", "forbidden-labels", "large-weights", "no-variables")
FIELDS = {name: field_registry.of_seed(name, 0) for name in KINDS}
LIMITED = [name for name, example in EXAMPLES.items() if "time_limit" in example.arguments]
LONG = {
    *("functions.minimize", "functions.maximize", "solve_map", "marginals"),
    *(
        "images.segment",
        "calibrate_temperature",
        "diverse",
        "inference.tune_diversity",
        "SetClassifier",
        "FieldSVM",
        "FieldBoost",
    ),
    *(
        "SetClassifierCV",
        "SetDecision",
        "StructBoostClassifier",
        "StructBoostRanker",
        "learning.one_slack",
        "learning.n_slack",
    ),
    *("learning.struct_boost", "thin"),
}


def at_moments(call, most=4):
    """The answers of a call whose limit strikes at one of several moments."""
    with counted() as clock:
        call()
    for at in moments(clock.readings, most):
        with counted(at):
            yield call()


def takes(methods, field):
    return [name for name, record in methods.items() if record.obstacle(field) is None]


def grid(n_labels, side=6):
    field = sw.fields.Field(np.random.default_rng(0).normal(size=(side * side, n_labels)))
    return field + sw.fields.Potts(sw.fields.grid_edges((side, side)), 0.6)


# ------------------------------------------------------------------------------ what holds of all


def test_every_long_call_takes_a_limit():
    assert {f"setwise.{name}" for name in LONG} == {*LIMITED}
    for name in LIMITED:
        parameter = inspect.signature(resolve(name)).parameters["time_limit"]
        assert parameter.default is None, name
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY, name


@pytest.mark.parametrize("name", LIMITED)
def test_no_time_at_all_is_an_answer_and_much_time_changes_nothing(name):
    example = EXAMPLES[name]
    seen = {}
    for limit in (None, 1e9, 0.0, 0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            answer = example.look(example.run(**{**example.arguments, "time_limit": limit}))
        seen[limit] = pickle.dumps(parts(answer))
    assert seen[None] == seen[1e9]


def parts(answer):
    """The arrays and numbers of an answer, but for its timings."""
    if isinstance(answer, tuple | list):
        return [parts(part) for part in answer]
    if hasattr(answer, "timings"):
        return [v for k, v in vars(answer).items() if k not in ("timings", "history")]
    return answer


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), True, "2", [1.0]])
@pytest.mark.parametrize("name", LIMITED)
def test_what_is_no_time_is_refused(name, bad):
    example = EXAMPLES[name]
    with pytest.raises((TypeError, ValueError), match="time_limit must"):
        example.run(**{**example.arguments, "time_limit": bad})


# -------------------------------------------------------------------------------- energies, log Z


@pytest.mark.parametrize("name", FIELDS)
def test_labelings_hold_at_every_moment(name):
    field = FIELDS[name]
    least = reference.least_energy(field)
    slack = 1e-9 * (1.0 + abs(least))
    for method in takes(MAP_METHODS, field):
        for best in at_moments(lambda m=method: sw.solve_map(field, m, time_limit=LIMIT)):
            assert best.value == field.energy(best.labels)
            assert best.bound - slack <= least <= best.value + slack
            assert not best.interrupted
            if NAMED in best.reason:
                assert not best.exact
                assert not best.converged
            if best.exact:
                assert best.value <= least + slack


@pytest.mark.parametrize("name", FIELDS)
def test_bounds_on_the_partition_function_hold_at_every_moment(name):
    field = FIELDS[name]
    log_z = reference.log_partition(field)
    slack = 1e-7 * (1.0 + abs(log_z))
    for method in takes(MARGINALS_METHODS, field):

        def call(method=method):
            return sw.marginals(field, method, tol=1e-6, max_iter=4, time_limit=LIMIT, rng=0)

        for post in at_moments(call, 3):
            np.testing.assert_allclose(post.probabilities.sum(axis=1), 1.0, rtol=1e-9)
            assert not post.probabilities[np.isinf(field.unary)].any()
            assert post.log_partition_lower <= log_z + slack
            if method != "perturb":  # whose upper bound holds up to chance
                assert log_z <= post.log_partition_upper + slack
            assert not post.interrupted
            assert post.gap >= 0.0


@pytest.mark.parametrize("method", [*MARGINALS_METHODS])
def test_a_gap_of_no_time_bounds_what_the_method_could_reach(method):
    field = FIELDS["potts-on-two-labels"]
    start = sw.marginals(field, method, time_limit=0.0, rng=0)
    assert start.n_iter == 0
    assert not start.converged
    assert start.reason.endswith("0 s reached")
    assert start.log_partition_lower > -np.inf
    if MARGINALS_METHODS[method].gives_bound and MARGINALS_METHODS[method].certified:
        least = least_upper(field, method)
        assert start.bound - 1e-9 <= least <= start.log_partition_upper


def test_steps_of_a_list_hold_at_every_moment():
    for n_labels, diversity in (
        (2, sw.diversities.HammingBall(4.0, 0.3)),
        (2, sw.diversities.DivMBest(0.5)),
        (3, sw.diversities.HammingBall(4.0, 0.3)),
        (3, sw.diversities.DivMBest(0.5)),
    ):
        field = FIELDS["potts-on-two-labels" if n_labels == 2 else "potts-on-three-labels"]
        calls = at_moments(lambda f=field, d=diversity: sw.diverse(f, 3, d, time_limit=LIMIT))
        lengths = []
        for found in calls:
            lengths.append(len(found.values))
            np.testing.assert_array_equal(found.values, field.energy(found.labelings))
            assert not found.interrupted
            assert (found.gaps >= 0).all()
            assert (NAMED in found.reason) or lengths[-1] == 3
            for k, bound in enumerate(found.bounds):
                best = reference.best_step(field, diversity, found.labelings[:k])
                assert bound <= best + 1e-9 * (1.0 + abs(best))
        assert min(lengths) == 1
        assert max(lengths) > 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_points_of_a_grid_that_are_done_are_kept(n_jobs):
    field, kind, grid = FIELDS["potts-on-two-labels"], sw.diversities.DivMBest, [0.2, 0.5, 1.0, 2.0]
    options = {"m": 2, "n_jobs": n_jobs}
    images, truths = [field] * 2, [np.zeros(field.n_variables, int)] * 2
    whole = sw.inference.tune_diversity(images, truths, kind, {"weight": grid}, **options)
    assert whole.reason == "every point was tried"

    def call():
        limited = options | {"time_limit": LIMIT}
        return sw.inference.tune_diversity(images, truths, kind, {"weight": grid}, **limited)

    done = set()
    for tuned in at_moments(call):
        done.add(len(tuned.scores))
        np.testing.assert_array_equal(tuned.scores, whole.scores[: len(tuned.scores)])
        assert not tuned.interrupted
        assert (tuned.reason == NAMED) == (len(tuned.scores) < len(grid))
    assert min(done) == 1


# --------------------------------------------------------------------------------- sets and fits


def test_sets_hold_at_every_moment():
    rng = np.random.default_rng(0)
    edges = np.array([(i, j) for i in range(8) for j in range(i)])[::2]
    function = sw.functions.Modular(rng.normal(size=8)) + sw.functions.Cut(
        edges, rng.random(len(edges)), n=8
    )
    least = reference.minimum(reference.all_values(function))
    reasons = set()
    for best in at_moments(lambda: sw.functions.minimize(function, time_limit=LIMIT), 20):
        reasons.add(best.reason)
        assert best.value == function(best.mask)
        assert best.bound <= least + 1e-12
        assert least <= best.value + 1e-12
        assert not best.interrupted
        assert best.reason == NAMED or best.exact
    assert NAMED in reasons


@pytest.mark.parametrize(("k", "method"), [(3, "greedy"), (None, "double")])
def test_large_sets_hold_at_every_moment(k, method):
    rng = np.random.default_rng(0)
    covered = [np.flatnonzero(rng.random(12) < 0.4) for _ in range(7)]
    function = sw.functions.Coverage(covered) + sw.functions.Modular(-rng.random(7))
    largest = reference.maximum(reference.all_values(function), k)
    reasons = set()
    for best in at_moments(
        lambda: sw.functions.maximize(function, k, method=method, time_limit=LIMIT), 8
    ):
        reasons.add(best.reason)
        assert best.value == pytest.approx(function(best.mask))
        assert best.value - 1e-9 <= largest <= best.bound + 1e-9
        assert not best.interrupted
        assert (best.guarantee is None) or best.reason == "done"
    assert reasons == {NAMED, "done"} or reasons == {NAMED}


@each_learner
def test_weights_hold_at_every_moment(learner):
    rounds = set()
    for fit in at_moments(lambda: learner.call(SMALL, 1.0, max_iter=8, time_limit=LIMIT)):
        assert_honest(fit, SMALL, 1.0, SMALL.minimum)
        assert not fit.interrupted
        assert fit.reason == NAMED or fit.n_iter > 1
        assert set(fit.timings) == {"model", "oracle"}
        rounds.add(fit.n_iter)
    assert len(rounds) > 1
    assert min(rounds) == 1


def test_weak_learners_hold_at_every_moment():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=30) > 0, 1.0, -1.0)

    class Hinge:
        offsets = np.array([0, 30])

        def __call__(self, scores):
            slack = 1.0 - y * scores
            return float(np.maximum(slack, 0.0).mean()), -y * (slack > 0) / 30

    def call(limit):
        return learning.struct_boost(
            Hinge(), learning.StumpSearch(X), 20.0, tol=1e-6, n_estimators=30, time_limit=limit
        )

    best = call(None)
    assert best.converged
    assert best.reason == "the relative gap is within tol=1e-06"
    for fit in at_moments(lambda: call(LIMIT)):
        assert fit.bound <= best.value + 1e-9
        assert best.bound <= fit.value + 1e-9
        assert fit.value == pytest.approx(fit.w.sum() + 20.0 * Hinge()(fit.scores)[0])
        assert not fit.interrupted
        assert fit.reason in (NAMED, best.reason)
        assert fit.converged == (fit.reason != NAMED)
        assert set(fit.timings) == {"program", "risk", "search"}


ESTIMATORS = {
    "SetClassifier": (sw.SetClassifier(tol=1e-6), None),
    "SetClassifier, threads": (sw.SetClassifier(tol=1e-6, n_jobs=2), None),
    "StructBoostClassifier": (sw.StructBoostClassifier(C=20.0, tol=1e-6), 0),
    "StructBoostRanker": (sw.StructBoostRanker(C=20.0, tol=1e-6), 0),
    "FieldSVM": (sw.FieldSVM(tol=1e-6), examples_of_learning.NODE_LABELS),
    "FieldBoost": (sw.FieldBoost(C=5.0, tol=1e-6), examples_of_learning.NODE_LABELS),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_warns_that_its_time_was_over(name):
    model, target = ESTIMATORS[name]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(15, 2))
    Y = (X @ rng.normal(size=(2, 3)) + rng.normal(size=(15, 3)) > 0).astype(int)
    data = (X, Y if target is None else Y[:, 0])
    if isinstance(target, list | tuple):
        data = (examples_of_learning.GRAPHS, target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        whole = copy.deepcopy(model).fit(*data)

    def call():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = copy.deepcopy(model).set_params(time_limit=LIMIT).fit(*data)
        return fitted, [w for w in caught if NAMED in str(w.message)]

    named = 0
    for fitted, caught in at_moments(call, 3):
        assert fitted.interrupted_ is False
        assert fitted.n_iter_ <= whole.n_iter_ or not caught
        assert bool(caught) <= (fitted.gap_ > fitted.tol)
        assert all(issubclass(w.category, ConvergenceWarning) for w in caught)
        assert fitted.history_.dual[-1] <= whole.history_.primal[-1] + 1e-9
        named += len(caught)
    assert named


# ----------------------------------------------------------------------------- how a limit strikes


def test_a_deadline_strikes_once_and_only_when_armed():
    with counted(at=3):
        deadline = Deadline.of(LIMIT)
        deadline.check()
        with pytest.raises(TimeUp):
            deadline.check()
        deadline.check()
        assert deadline.expired
        assert deadline.sentence == NAMED
        with pytest.raises(TimeUp):
            deadline.run(abs, -1)
    with counted(at=1):
        deadline = Deadline.of(0.0, armed=False)
        assert deadline.run(abs, -1) == 1
        assert not deadline.expired
        deadline.armed = True
        with pytest.raises(TimeUp):
            deadline.run(abs, -1)
    assert Deadline.of(None).run(abs, -1) == 1


def test_the_outer_of_two_limits_counts_inside_the_inner_one():
    outer, inner = Deadline.of(0.0, armed=False), Deadline.of(1e9)

    def within():
        outer.armed = True
        _core.poll()

    with pytest.raises(TimeUp):
        outer.run(inner.run, within)
    assert outer.expired
    assert not inner.expired
    assert not _core.has_check()


def test_no_limit_strikes_in_what_a_callback_calls():
    field, found = grid(3), []

    def callback(progress):
        found.append(sw.solve_map(field, "convex"))

    with counted() as clock:
        expected = sw.solve_map(field, "convex", time_limit=LIMIT)
    with counted(clock.readings // 2):
        best = sw.solve_map(field, "convex", time_limit=LIMIT, callback=callback)
    assert NAMED in best.reason
    assert found
    for other in found:
        assert not other.interrupted
        assert other.value == expected.value


def test_a_callback_that_stops_is_not_taken_for_the_limit():
    best = sw.solve_map(grid(3), "convex", tol=0.0, time_limit=1e9, callback=lambda now: True)
    assert best.interrupted
    assert "time_limit" not in best.reason


def test_a_limit_ends_the_threads_that_work_for_the_call():
    ended = threading.Semaphore(0)

    def spin(k):
        try:
            while True:
                _core.poll()
        except CancelledError:
            ended.release()
            raise

    with counted(at=4), Pool(2) as pool, pytest.raises(TimeUp):
        Deadline.of(LIMIT).run(pool.map, spin, range(2))
    assert all(ended.acquire(timeout=60) for _ in range(2))


def test_the_best_bound_of_a_pass_is_kept():
    field = grid(4, side=12)
    bounds = [
        best.bound
        for best in at_moments(lambda: sw.solve_map(field, "convex", time_limit=LIMIT), 30)
    ]
    assert len(set(bounds)) > 5
    assert (np.diff(bounds) >= -1e-9).all()


# ------------------------------------------------------------------------------ shown, and timed


@pytest.mark.parametrize(
    "call",
    [
        lambda **options: sw.solve_map(grid(3), **options),
        lambda **options: sw.marginals(grid(3), **options),
        lambda **options: sw.diverse(grid(3), 3, sw.diversities.DivMBest(0.5), **options),
        lambda **options: sw.functions.minimize(
            sw.functions.Modular([1.0, -1.0, 0.5]) + sw.functions.Cut([[0, 1], [1, 2]], n=3),
            **options,
        ),
        lambda **options: learning.one_slack(SMALL.risk, 3, **options),
        lambda **options: learning.n_slack(SMALL.example, 12, 3, **options),
        lambda **options: learning.struct_boost(
            examples_of_learning.Hinge(),
            learning.StumpSearch(examples_of_learning.ROWS),
            20.0,
            **options,
        ),
    ],
    ids=[
        *("solve_map", "marginals", "diverse", "minimize"),
        *("one_slack", "n_slack", "struct_boost"),
    ],
)
def test_progress_is_shown_on_stderr_and_changes_nothing(call, capsys):
    silent = call()
    assert capsys.readouterr() == ("", "")
    seen = []
    shown = call(verbose=True, callback=seen.append, time_limit=1e9)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert seen
    assert lines[0].startswith("round 1: value ")
    assert " s" in lines[0]
    assert lines[-1].startswith(f"round {seen[-1].n_iter}: ")
    assert pickle.dumps(parts(shown)) == pickle.dumps(parts(silent))
    assert call(verbose=True, time_limit=0.0).reason.endswith("time_limit of 0 s reached")


def test_timings_are_seconds_by_phase():
    best = sw.solve_map(grid(3), "expansion")
    assert list(best.timings) == ["set-up", "search", "bound", "answer"]
    assert best.timings.total == sum(best.timings.values()) >= 0.0
    assert "timings=Timings(set-up " in repr(best)
    for copied in (pickle.loads(pickle.dumps(best.timings)), copy.deepcopy(best.timings)):
        assert isinstance(copied, Timings)
        assert copied == best.timings
    with pytest.raises(TypeError):
        best.timings["search"] = 0.0
    watch = Stopwatch()
    watch.lap("one")
    assert list(watch.timings("two")) == ["one", "two"]


@pytest.mark.parametrize("refit", [True, False])
def test_a_search_for_c_ends_with_what_every_fold_had_time_for(refit):
    X, Y = np.random.default_rng(0).normal(size=(24, 3)), None
    Y = (X[:, :2] + np.random.default_rng(1).normal(size=(24, 2)) > 0.5).astype(int)
    grid = [1.0, 0.01, 0.1]

    def call():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = sw.SetClassifierCV("jaccard", Cs=grid, cv=2, time_limit=LIMIT, refit=refit)
            return model.fit(X, Y)

    whole = sw.SetClassifierCV("jaccard", Cs=grid, cv=2, refit=refit).fit(X, Y)
    counts = set()
    for model in at_moments(call, 8):
        fitted = np.isfinite(model.scores_)
        counts.add(int(fitted.sum()))
        assert fitted[:, 1].all()  # the smallest C
        order = np.argsort(grid)
        assert np.all(np.diff(fitted[:, order].astype(int), axis=1) <= 0)
        assert np.array_equal(model.n_iter_ > 0, fitted)
        assert not model.interrupted_
        assert 0 <= model.gap_ <= 1
        if refit:
            compared = np.where(fitted.all(axis=0), model.scores_.mean(axis=0), -1.0)
            assert grid[int(np.argmax(compared))] == model.C_
        if fitted.all() and model.gap_ == whole.gap_:
            assert np.array_equal(model.scores_, whole.scores_)
    assert min(counts) < 6


def test_a_bound_without_time_holds_to_the_last_digit():
    """The logarithm of 1 + x is wrong by the rounding of 1, however small x is."""
    for x in np.linspace(0.5, 20.0, 60):
        post = sw.marginals(sw.fields.Field([[0.0, x]]), "trees", time_limit=0)
        truth = np.log1p(np.exp(-np.longdouble(x)))
        assert post.log_partition_lower <= truth <= post.log_partition_upper


def test_an_oracle_of_the_user_is_not_cut_short():
    """The limit does not strike in searches that an oracle runs: part of an answer is no plane."""
    checked = []

    def oracle(*arguments):
        checked.append(_core.has_check())
        return SMALL.risk(*arguments) if len(arguments) == 1 else SMALL.example(*arguments)

    learning.one_slack(oracle, 3, time_limit=1e9)
    learning.n_slack(oracle, 12, 3, time_limit=1e9)
    assert checked
    assert not any(checked)
