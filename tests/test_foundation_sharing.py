"""Objects that many threads use at once answer as they do in one thread, to the last bit.

The kernels run without the interpreter's lock, so that these tests run kernels side by side under
any interpreter; under a free-threaded one the Python code does so too.
"""

import pickle
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from estimator_registry import EVERY, answer, fitted, same
from field_registry import FIELDS, of_seed
from loss_registry import LOSSES
from surrogate_registry import SURROGATES

import setwise as sw
from setwise.inference import FlowGraph
from setwise.learning import PerceptronSearch, StepSearch, StumpSearch

THREADS, TIMES = 6, 3


@pytest.fixture(autouse=True)
def threads_that_take_turns_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(ask: Callable[[], Any]) -> list[Any]:
    """What each of several threads is answered when all begin at the same moment."""
    start = threading.Barrier(THREADS)

    def work(_):
        start.wait()
        return [ask() for _ in range(TIMES)]

    with ThreadPoolExecutor(THREADS) as pool:
        return [got for part in pool.map(work, range(THREADS)) for got in part]


def check(shared: Callable[[], Any], alone: Callable[[], Any]) -> None:
    expected = alone()
    for got in together(shared):
        assert same(got, expected)


@pytest.mark.parametrize("name", [name for name in EVERY if EVERY[name][1] != "update"])
def test_fitted_models(name):
    model = fitted(name)
    ask = EVERY[name][1]
    twin = pickle.loads(pickle.dumps(model))  # has computed nothing yet
    check(lambda: answer(model, ask), lambda: answer(twin, ask))


@pytest.mark.parametrize("name", FIELDS)
def test_fields(name):
    def ask(field):
        best, post = sw.solve_map(field), sw.marginals(field, max_iter=20)
        return [best.labels, best.value, best.bound, post.probabilities, post.log_partition_upper]

    field = of_seed(name, 0)
    check(lambda: ask(field), lambda: ask(of_seed(name, 0)))


def test_searches_of_weak_learners():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(200, 5)), rng.normal(size=200)
    for search in (StepSearch(X, 2), StumpSearch(X, 2), PerceptronSearch(X)):

        def ask(search=search):
            return [column.response for column in search(weights)]

        check(ask, ask)


def test_lists():
    field = of_seed("potts-on-three-labels", 0)
    ball = sw.diversities.HammingBall(2.0, 0.05)

    def ask():
        found = sw.diverse(field, 3, ball)
        return [found.labelings, found.gaps]

    check(ask, ask)


def test_functions_losses_and_surrogates():
    rng = np.random.default_rng(0)
    y, scores = rng.random((20, 4)) < 0.5, rng.normal(size=(20, 4))
    for listed in LOSSES.values():
        if 4 in listed.sizes:
            loss = listed.loss
            check(lambda loss=loss: loss(y, scores > 0), lambda loss=loss: loss(y, scores > 0))
    hinges = [SURROGATES["lovasz"].make(sw.losses.Jaccard()), sw.surrogates.DecomposedHinge("dice")]
    for hinge in hinges:
        check(
            lambda hinge=hinge: hinge.value_and_gradient(y, scores),
            lambda hinge=hinge: hinge.value_and_gradient(y, scores),
        )


def test_a_solved_graph():
    rng = np.random.default_rng(0)
    wish = rng.integers(-9, 9, (30, 30))

    def graph():
        made = FlowGraph.grid((30, 30), 3)
        made.set_terminals(np.maximum(wish, 0), np.maximum(-wish, 0))
        return made

    def ask(graph):
        copy = graph.copy()
        return [graph.solve(), graph.mask, graph.flows, graph.residuals, copy.solve()]

    one = graph()
    check(lambda: ask(one), lambda: ask(graph()))
