"""Samples of fields: against all labellings, one by one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from field_registry import FIELDS, of_seed
from scipy.stats import chi2

import setwise as sw
from setwise.inference._sampling._diagnostics import effective_size, r_hat, r_hat_of_labels

DRAWS = 3000


def distribution(field: sw.fields.Field, t: float) -> tuple[np.ndarray, np.ndarray]:
    """All labellings, and their probabilities."""
    labels = np.array(list(product(range(field.n_labels), repeat=field.n_variables)))
    energies = field.energy(labels.reshape(len(labels), field.n_variables)) / t
    p = np.exp(-(energies - energies.min()))
    return labels.reshape(len(labels), field.n_variables), p / p.sum()


def p_value(drawn: np.ndarray, p: np.ndarray, n_labels: int) -> float:
    """Of independent draws, by a chi-square test; labellings that are rare count as one."""
    n = drawn.shape[1]
    codes = drawn @ n_labels ** np.arange(n)[::-1]
    seen = np.bincount(codes, minlength=len(p)).astype(float)
    assert not seen[p == 0].any()
    common = p * len(drawn) >= 5
    observed = np.append(seen[common], seen[~common].sum())
    expected = np.append(p[common], p[~common].sum()) * len(drawn)
    kept = expected > 1
    if kept.sum() < 2:
        return 1.0
    terms = (observed[kept] - expected[kept]) ** 2 / expected[kept]
    return float(chi2.sf(terms.sum(), kept.sum() - 1))


def test_tables_that_forbid_are_refused() -> None:
    with pytest.raises(ValueError, match="field must have finite tables for sample"):
        sw.sample(of_seed("hard-cliques", 1), 3)


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "hard-cliques"])
def test_sweeps_keep_the_distribution(name: str) -> None:
    """Chains that start from exact, independent draws stay such draws after any sweeps."""
    field, t = of_seed(name, 1), 1.3
    if field.n_labels**field.n_variables > 5000:
        return
    labels, p = distribution(field, t)
    rng = np.random.default_rng(7)
    starts = labels[rng.choice(len(labels), DRAWS, p=p)]
    options = {"temperature": t, "init": starts, "n_chains": DRAWS, "burn_in": 0, "rng": 5}
    drawn = sw.sample(field, DRAWS, thin=3, n_jobs=1, **options)
    assert p_value(drawn.labelings, p, field.n_labels) > 1e-4
    np.testing.assert_allclose(drawn.energies, field.energy(drawn.labelings))
    if p.max() < 0.9 and name != "large-weights":  # there two labellings have nothing in between
        assert (drawn.labelings != starts).any()


@pytest.mark.parametrize("name", ["potts-on-a-tree", "tables-on-a-tree", "unaries-alone"])
def test_forests_give_independent_exact_samples(name: str) -> None:
    for seed in range(2):
        field = of_seed(name, seed)
        drawn = sw.sample(field, DRAWS, rng=seed, temperature=0.8)
        assert drawn.exact
        assert drawn.r_hat == 1.0
        assert drawn.effective_sample_size == DRAWS
        _, p = distribution(field, 0.8)
        assert p_value(drawn.labelings, p, field.n_labels) > 1e-4


def test_steep_pairs_are_exact_too() -> None:
    """Edges whose exponentials are 0, and children that contradict each other."""
    unary = [[0.0, np.inf], [0.3, 0.0], [np.inf, 0.0]]
    field = sw.fields.Field(unary) + sw.fields.Potts([[0, 1], [1, 2]], [800.0, 799.0])
    _, p = distribution(field, 1.0)
    drawn = sw.sample(field, DRAWS, rng=0)
    assert drawn.exact
    assert p_value(drawn.labelings, p, 2) > 1e-4
    tables = sw.fields.Pairwise([[0, 1], [1, 2]], [[[0.0, 800.0], [801.0, 0.0]]] * 2)
    field = sw.fields.Field(unary) + tables
    _, p = distribution(field, 1.0)
    assert p_value(sw.sample(field, DRAWS, rng=0).labelings, p, 2) > 1e-4


@pytest.mark.parametrize(
    "name", ["potts-on-three-labels", "region-consistency", "any-tables-on-two-labels"]
)
def test_chains_come_to_the_marginals_from_any_start(name: str) -> None:
    field = of_seed(name, 2)
    labels, p = distribution(field, 1.0)
    worst = labels[np.argmin(np.where(p > 0, p, 1.0))]
    drawn = sw.sample(field, 4000, init=worst, n_chains=8, thin=4, rng=0)
    assert not drawn.exact
    assert drawn.r_hat < 1.02
    assert drawn.effective_sample_size > 1000
    exact = np.stack([(p[:, None] * (labels == j)).sum(0) for j in range(field.n_labels)], axis=1)
    assert np.abs(drawn.probabilities - exact).max() < 0.04


def test_seeds_threads_and_chains() -> None:
    field = of_seed("potts-on-three-labels", 0)
    one = sw.sample(field, 10, rng=3, n_jobs=1)
    np.testing.assert_array_equal(one.labelings, sw.sample(field, 10, rng=3, n_jobs=3).labelings)
    other = sw.sample(field, 10, rng=np.random.default_rng(3), n_jobs=2)
    np.testing.assert_array_equal(one.labelings, other.labelings)
    assert (one.labelings != sw.sample(field, 10, rng=4).labelings).any()
    assert one.n_chains == 4
    assert one.labelings.shape == (10, 6)
    assert sw.sample(field, 2, rng=0).n_chains == 2
    assert np.isnan(sw.sample(field, 2, rng=0).r_hat)


def test_forbidden_labels_are_never_drawn() -> None:
    unary = np.zeros((9, 3))
    unary[::2, 1] = np.inf
    field = sw.fields.Field(unary) + sw.fields.Potts(sw.fields.grid_edges((3, 3)), 1.0)
    for potential in (None, sw.fields.RegionConsistency(np.zeros(9, int), 1.0, 0.5)):
        whole = field if potential is None else field + potential
        drawn = sw.sample(whole, 200, rng=0)
        assert (drawn.labelings[:, ::2] != 1).all()
        assert np.isfinite(drawn.energies).all()
        assert drawn.label_images.shape == (200, 3, 3)


def test_the_diagnostic_sees_chains_that_do_not_mix() -> None:
    edges = sw.fields.grid_edges((6, 6))
    field = sw.fields.Field(np.zeros((36, 2))) + sw.fields.Potts(edges, 5.0)
    stuck = sw.sample(field, 200, init=[[0] * 36, [1] * 36], rng=0)
    assert stuck.r_hat > 1.5
    assert stuck.effective_sample_size < 20
    assert "blocked Gibbs over 2 forests" in stuck.reason


@pytest.mark.parametrize("t", [0.1, 0.03])
def test_chains_that_freeze_are_told_of(t: float) -> None:
    """From labels drawn by the unaries all chains freeze alike: they start apart, and disagree."""
    unary = np.random.default_rng(0).normal(size=(576, 2))
    field = sw.fields.Field(unary) + sw.fields.Potts(sw.fields.grid_edges((24, 24)), 1.0)
    frozen = sw.sample(field, 200, temperature=t, rng=0)
    assert frozen.moved < 0.05
    assert frozen.r_hat > 1.5
    assert "disagree" in frozen.warning
    warm = sw.sample(field, 400, temperature=3.0, rng=0)
    assert warm.warning == ""
    assert warm.moved > 0.2


def test_chains_that_stand_still_at_the_wrong_place_are_told_of() -> None:
    unary = np.tile([[0.0, -0.2]], (36, 1))
    field = sw.fields.Field(unary) + sw.fields.Potts(sw.fields.grid_edges((6, 6)), 5.0)
    wrong = sw.sample(field, 80, init=[0] * 36, rng=0)
    assert np.isnan(wrong.r_hat)  # nothing ever moved
    assert np.isnan(wrong.effective_sample_size)
    assert wrong.moved == 0.0
    assert "100% of the steps" in wrong.warning
    assert "at most about 0.00075 of the probability" in wrong.warning  # exp(-0.2 * 36)
    right = sw.sample(field, 80, init=[1] * 36, rng=0)
    assert right.warning == ""
    assert right.r_hat == 1.0
    assert right.effective_sample_size == 80
    assert "fewer than 4" in sw.sample(field, 4, rng=0).warning


@pytest.mark.parametrize("preference", [0.0, -0.01, -0.2])
def test_chains_that_never_moved_are_told_of(preference: float) -> None:
    """Two modes: independent samples would be in both, or at least move within the better one."""
    unary = np.tile([[0.0, preference]], (36, 1))
    field = sw.fields.Field(unary) + sw.fields.Potts(sw.fields.grid_edges((6, 6)), 5.0)
    never = sw.sample(field, 4000, init=[1] * 36, rng=0)
    assert never.moved == 0.0
    assert np.isnan(never.r_hat)
    assert np.isnan(never.effective_sample_size)
    assert never.warning.startswith("the chains never moved") or "at most about" in never.warning
    upper = sw.marginals(field).log_partition_upper
    share = np.exp(-field.energy([1] * 36) - upper)
    if preference < 0.0:
        told = "all of 4000 independent samples would be where they stand with a probability from"
        assert f"{told} {share**4000:.2g}" in never.warning


def test_chains_that_stand_where_mean_field_ends_too_are_told_of() -> None:
    field = sw.fields.Field([[0.0, 5.0]] * 3)
    table = [[0.0, 100.0], [100.0, -50.0]]
    field += sw.fields.Pairwise([[0, 1], [1, 2], [2, 0]], table)
    for constant in (0.0, 1e9):
        raised = field.with_unary(field.unary + constant)
        wrong = sw.sample(raised, 80, init=[0] * 3, rng=0)
        assert "at most about 2.3e-59 of the probability" in wrong.warning  # exp(15 - 150)
        assert sw.sample(raised, 80, init=[1] * 3, rng=0).warning == ""


def test_modes_of_the_same_energy_and_as_much_of_each_label_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    half = np.repeat([0, 1], 50)
    chains = np.stack([np.tile(half, (40, 1)), np.tile(half[::-1], (40, 1))])
    noise = rng.uniform(size=chains.shape) < 0.1
    assert r_hat_of_labels(np.where(noise, 1 - chains, chains), 2) > 1.5
    assert abs(r_hat_of_labels(np.where(noise, 1 - chains[:1], chains[:1]), 2) - 1.0) < 0.02
    assert r_hat_of_labels(chains, 2) == np.inf
    assert r_hat_of_labels(chains[:1], 2) == 1.0


def test_metropolis_steps_are_told_of() -> None:
    field = of_seed("region-consistency", 0)
    drawn = sw.sample(field, 20, rng=0)
    assert "Metropolis" in drawn.reason
    assert 0.0 < drawn.acceptance <= 1.0
    assert "independent" in sw.sample(of_seed("potts-on-a-tree", 0), 2, rng=0).reason


def test_effective_sizes_of_known_series() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(4, 4000))
    assert effective_size(noise) > 13_000
    assert abs(r_hat(noise) - 1) < 1e-3
    series = noise.copy()
    for k in range(1, 4000):  # x_k = 0.9 x_(k - 1) + noise: (1 + 0.9) / (1 - 0.9) = 19 tell as one
        series[:, k] += 0.9 * series[:, k - 1]
    assert 16_000 / 19 * 0.8 < effective_size(series) < 16_000 / 19 * 1.25
    assert r_hat(noise + np.arange(4)[:, None]) > 1.3
    assert r_hat(np.ones((2, 10))) == 1.0
    assert effective_size(np.ones((2, 10))) == 20


def test_labels_beyond_a_table_of_a_model_file_are_never_drawn(tmp_path) -> None:
    path = tmp_path / "model.uai"
    path.write_text("MARKOV 3  2 3 2  1  3 0 1 2  12  1 1 1 1 1 1 2 2 2 2 2 2")
    table = sw.fields.read_uai(path).potentials[0]
    field = sw.fields.Field(np.zeros((3, 3))) + table  # whose unaries forbid nothing
    drawn = sw.sample(field, 4000, rng=0)
    assert np.isfinite(drawn.energies).all()
    np.testing.assert_allclose(
        drawn.probabilities, sw.marginals(field).probabilities, atol=5 / np.sqrt(4000)
    )
    with pytest.raises(ValueError, match="field must have a labelling of finite energy"):
        sw.sample(sw.fields.Field([[np.inf, np.inf, 0.0]] * 3) + table, 4)


def test_more_samples_than_any_memory_holds_are_refused() -> None:
    with pytest.raises(ValueError, match="n must be at most"):
        sw.sample(sw.fields.Field(np.zeros((3, 2))), 2**70)
