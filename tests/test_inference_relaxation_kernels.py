"""The kernels of a pass against plain versions: exp and log, sorting, groups that take turns."""

from __future__ import annotations

import numpy as np
import pytest
from field_terms import random_field
from scipy.special import logsumexp, softmax
from sklearn.isotonic import isotonic_regression

import setwise as sw
from setwise import _core
from setwise.inference._relaxation._projected_logits import Descent
from setwise.inference._relaxation._relaxation import Relaxation

# ---------------------------------------------------------------------------- exp and log


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1.0, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("temperature", [1.0, 0.1])
def test_softmax_equals_scipys(scale, temperature):
    s = scale * np.random.default_rng(0).normal(size=(301, 7))
    state = _core.RelaxationState(s)
    p = np.empty_like(s)
    state.probabilities(temperature, p, 1)
    # the quotient is rounded before exp, and so are its digits in the answer
    digits = 4e-16 * (2 + np.ptp(s, axis=1, keepdims=True) / temperature)
    expected = softmax(-s / temperature, axis=1)
    assert (np.abs(p - expected) <= digits * expected + 1e-300).all()
    value, bound = state.evaluate(temperature, 1)
    total = temperature * logsumexp(-s / temperature, axis=1).sum()
    assert value == pytest.approx(total, rel=1e-13, abs=1e-12 * scale)
    assert bound == pytest.approx(s.min(axis=1).sum(), rel=1e-13)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("seed", range(10))
def test_a_step_is_the_projection_of_the_logits(seed, dtype):
    # two variables with one edge: entries (y, -y) with y clipped to half the edge's weight
    rng = np.random.default_rng(seed)
    n_labels = int(rng.integers(2, 9))
    unary = rng.choice([0.1, 3.0, 100.0]) * rng.normal(size=(2, n_labels))
    half = float(rng.random())
    kind = _core.RelaxationState if dtype == "float64" else _core.RelaxationState32
    state = kind(unary)
    state.add_group(
        0,
        np.arange(2),
        np.array([0, 2]),
        np.array([half, 0.0]),
        np.arange(n_labels + 1),
        np.arange(n_labels),
        np.zeros(0, np.int64),
    )
    state.set_unary(unary, 1)
    state.sweep(1.0, 0.0, 1)
    s = unary.copy()
    expected = np.zeros((n_labels, 2))
    for j in range(n_labels):
        logits = -s[:, j] - logsumexp(-np.delete(s, j, axis=1), axis=1)
        expected[j] = np.array([1, -1]) * np.clip((logits[0] - logits[1]) / 2, -half, half)
        s[:, j] += expected[j]
    blocks = np.empty(state.size(), dtype)
    state.blocks(blocks)
    digits = (1e-14 if dtype == "float64" else 1e-5) * max(1.0, np.abs(unary).max())
    np.testing.assert_allclose(blocks.reshape(n_labels, 2), expected, atol=digits)


# ---------------------------------------------------------------------------- sorting


def values_to_sort(name: str, rng: np.random.Generator) -> np.ndarray:
    match name:
        case "spread":
            return rng.normal(size=1000)
        case "ties":
            return rng.integers(0, 5, 700).astype(float)
        case "equal":
            return np.full(300, 2.5)
        case "an outlier":
            return np.append(rng.normal(size=500), 1e12)
        case "the whole range":
            return np.array([1.7e308, -1.7e308, 0.0, 1.0, 5e-324, -5e-324])
        case "hardly any difference":
            return 1.0 + 1e-16 * rng.integers(0, 9, 400)
        case _:
            return rng.normal(size=70_000)


@pytest.mark.parametrize(
    "name",
    ["spread", "ties", "equal", "an outlier", "hardly any difference", "more than 16 bits"],
)
def test_counts_of_many_values_are_isotonic_regressions(name):
    rng = np.random.default_rng(0)
    z = values_to_sort(name, rng)
    gains = np.sort(rng.normal(size=len(z)))[::-1].copy()
    order = np.argsort(-z, kind="stable")
    expected = np.empty_like(z)
    expected[order] = z[order] - isotonic_regression(z[order] - gains, increasing=False)
    s = np.empty_like(z)
    _core.project_count(z, gains, s)
    np.testing.assert_allclose(s, expected, atol=1e-15 * len(z) * np.abs(z).max())


@pytest.mark.parametrize("name", ["ties", "equal", "the whole range", "hardly any difference"])
def test_what_is_equal_keeps_its_order(name):
    # linear gains far apart: nothing is pooled, and an entry tells the place of its value
    z = values_to_sort(name, np.random.default_rng(0))
    n = len(z)
    state = _core.FrankWolfeState(np.zeros((n, 1)))
    gains = -np.arange(n, dtype=float)
    one, none = np.array([0, 1]), np.zeros(0, np.int64)
    state.add_group(1, np.arange(n), np.array([0, n]), gains, one, np.array([0]), none)
    x = np.empty((n, 1))
    state.vertex(np.ascontiguousarray(z[:, None]), x, 1)
    np.testing.assert_array_equal(np.argsort(-x[:, 0]), np.argsort(-z, kind="stable"))


# ---------------------------------------------------------------------------- taking turns


def descent_of(seed: int, n_threads: int = 1) -> Descent:
    field = random_field(["potts", "count", "label", "concave cardinality"], 40, 3, seed)
    return Descent(Relaxation(field), 0.5, n_threads)


def scores_of(state, shape) -> np.ndarray:
    scores = np.empty(shape)
    state.scores(scores)
    return scores


@pytest.mark.parametrize("seed", range(8))
def test_light_groups_keep_the_total_the_sum_of_the_blocks(seed):
    rng = np.random.default_rng(seed)
    descent, fresh = descent_of(seed), descent_of(seed)
    shape = descent.scores().shape
    n_groups = len(descent._relaxation.groups)
    height = descent._state.evaluate(0.5, 1)[0]
    for k in range(40):
        if k % 5 == 4:
            descent._state.set_light((rng.random(n_groups) < 0.6).astype(np.uint8), 1)
        before = descent.blocks()
        descent._state.sweep(0.5, rng.choice([0.0, 0.3]), 1)
        now = descent._state.evaluate(0.5, 1)[0]
        if now > height or rng.random() < 0.2:
            descent._state.revert(1)
            np.testing.assert_array_equal(descent.blocks(), before)
        height = min(height, now)
        fresh._state.set_blocks(descent.blocks(), 1)
        np.testing.assert_allclose(
            scores_of(descent._state, shape), scores_of(fresh._state, shape), atol=1e-12
        )


@pytest.mark.parametrize("seed", range(8))
def test_a_pass_without_momentum_does_not_rise_whichever_groups_are_light(seed):
    rng = np.random.default_rng(seed)
    descent = descent_of(seed)
    n_groups = len(descent._relaxation.groups)
    height = np.inf
    for _ in range(12):
        descent._state.set_light((rng.random(n_groups) < 0.6).astype(np.uint8), 1)
        descent._state.sweep(0.5, 0.0, 1)
        now = descent._state.evaluate(0.5, 1)[0]
        assert now <= height + 1e-12
        height = now


def test_the_gaps_of_the_groups_add_up():
    descent = descent_of(0)
    descent.sweep()
    p = descent.probabilities()
    gaps = np.empty(len(descent._relaxation.groups))
    descent._state.gaps(p, gaps, 2)
    assert gaps.sum() == pytest.approx(descent._state.gap(p, 1), rel=1e-12)
    assert (gaps >= -1e-12).all()


def test_sizes_are_checked():
    descent = descent_of(0)
    n_groups = len(descent._relaxation.groups)
    with pytest.raises(ValueError, match="light must have an entry for each group"):
        descent._state.set_light(np.zeros(n_groups + 1, np.uint8), 1)
    with pytest.raises(ValueError, match="gaps must have an entry for each group"):
        descent._state.gaps(descent.probabilities(), np.empty(n_groups + 1), 1)


def test_passes_end_where_rounding_has_the_last_word():
    rng = np.random.default_rng(0)
    field = sw.fields.Field(30 * rng.normal(size=(900, 5)))
    field = field + sw.fields.Potts(sw.fields.grid_edges((30, 30)), 3.0)
    post = sw.marginals(field, "projection", tol=1e-8, dtype="float32", n_jobs=1)
    assert not post.converged
    assert post.relative_gap <= 1e-6
    assert post.n_iter < 2000
