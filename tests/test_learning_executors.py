"""Executors: answers in the order of the shards, errors passed on, the same fit bit for bit."""

import re
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest
from learner_registry import SVM

from setwise.learning import Serial, Threads, one_slack, tree_sum
from setwise.learning._tree_sum import tree_level


@pytest.fixture(params=[Serial, lambda: Threads(1), lambda: Threads(3)])
def executor(request):
    made = request.param()
    yield made
    made.close()


def test_answers_come_in_the_order_of_the_shards(executor):
    assert executor.map(lambda k: k * k, range(20)) == [k * k for k in range(20)]
    assert executor.map(abs, []) == []
    assert executor.map(abs, iter([-1, 1])) == [1, 1]


@pytest.mark.parametrize("n", range(1, 34))
def test_sums_are_the_nodes_of_one_tree_whoever_makes_them(executor, n):
    """By brackets: what is added to what depends on the number of shards alone."""
    nodes = [str(k) for k in range(n)]
    levels = [nodes]
    while len(nodes) > 1:
        pairs = [f"({a}{b})" for a, b in zip(nodes[0::2], nodes[1::2], strict=False)]
        nodes = pairs + nodes[2 * len(pairs) :]
        levels.append(nodes)
    add = "({}{})".format
    assert tree_sum(levels[0], add) == nodes[0]
    for most in (1, 2, 3, 7, 40):
        wanted = next(level for level in levels if len(level) <= most)
        assert tree_level(levels[0], most, add) == wanted

    def leaf(shard, own=""):
        return Bracket(f"{shard}{own}")

    placed = executor.place(range(n))
    for most in (1, 3):
        wanted = next(level for level in levels if len(level) <= most)
        assert [node.text for node in executor.sums(leaf, placed, most=most)] == wanted
    each = executor.sums(leaf, placed, each=["!"] * n)[0]
    assert each.text.replace("!", "") == nodes[0]


class Bracket:
    def __init__(self, text):
        self.text = text

    def __add__(self, other):
        return Bracket(f"({self.text}{other.text})")


def test_sums_of_nothing_and_arguments_that_do_not_fit_are_refused(executor):
    with pytest.raises(ValueError, match="shards must hold at least one shard to be summed over"):
        executor.sums(abs, [])
    with pytest.raises(ValueError, match="each must have an entry for each of 2 shards, got 1"):
        executor.sums(pow, [1, 2], each=[2])
    with pytest.raises(ValueError, match="parts must hold at least one part, got none"):
        tree_sum([])
    assert executor.map(pow, [1, 2, 3], 2) == [1, 4, 9]
    assert executor.sums(divmod, [7, 9], 2) == [(7, 2)]


def test_an_executor_passes_errors_on(executor):
    with pytest.raises(ZeroDivisionError):
        executor.map(lambda k: 1 // k, [1, 0, 1])
    assert executor.map(abs, [-3]) == [3]


def test_threads_run_side_by_side_and_keep_the_order():
    """The first shard waits for the second: on one thread it would wait for ever."""
    second = threading.Event()

    def work(shard):
        if shard == 0:
            assert second.wait(timeout=60)
        second.set()
        return shard

    threads = Threads(2)
    assert threads.map(work, [0, 1]) == [0, 1]
    threads.close()


def test_executors_give_the_same_fit_bit_for_bit(executor):
    shards = np.array_split(np.arange(SVM.n), 7)

    def risk(w, executor):
        def part(shard):
            answers = [SVM.example(i, w) for i in shard]
            return sum(value for value, _ in answers), np.sum([s for _, s in answers], axis=0)

        return executor.sums(part, shards)[0]

    fit = one_slack(lambda w: risk(w, executor), SVM.dimension, tol=1e-6)
    serial = one_slack(lambda w: risk(w, Serial()), SVM.dimension, tol=1e-6)
    assert np.array_equal(fit.w, serial.w)
    assert np.array_equal(fit.history.primal, serial.history.primal)
    assert np.array_equal(fit.history.dual, serial.history.dual)


def test_the_executor_for_ray_in_the_guide_has_the_bits_of_serial():
    """Ray is not asked for: a stand-in has the three functions that the example calls."""
    text = (Path(__file__).parents[1] / "docs/guide/real_cluster.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(import ray\n.*?)```", text, re.DOTALL).group(1)

    class Remote:
        def __init__(self, function):
            self.remote = lambda *given: Box(function(*(ray_get(own) for own in given)))

    class Box:
        def __init__(self, value):
            self.value = value

    def ray_get(own):
        if isinstance(own, list):
            return [ray_get(one) for one in own]
        return own.value if isinstance(own, Box) else own

    ray = types.ModuleType("ray")
    ray.put, ray.get, ray.remote = Box, ray_get, Remote
    sys.modules["ray"] = ray
    try:
        names = {}
        exec(code, names)
        executor = names["RayExecutor"]()
        shards = [np.float64(1.0) / k for k in range(1, 14)]
        placed = executor.place(shards)
        for most in (1, 3):
            assert executor.sums(pow, placed, 1.5, most=most) == Serial().sums(
                pow, shards, 1.5, most=most
            )
        assert executor.map(pow, placed, 2) == Serial().map(pow, shards, 2)
        each = [k % 3 for k in range(13)]
        assert executor.sums(pow, placed, each=each) == Serial().sums(pow, shards, each=each)
        executor.close()
    finally:
        del sys.modules["ray"]
