"""The theorems of risk control, by Monte Carlo with fixed seeds, and what is refused."""

import numpy as np
import pytest
from scipy.stats import binom

from setwise.conformal import control_risk
from setwise.decisions._risk_control import (
    bound_of,
    highest_threshold,
    least_examples,
    p_values,
    passes,
)

LEVELS = np.arange(41) / 40


def drawn(rng: np.random.Generator, repeats: int, n: int, elements: int = 6) -> np.ndarray:
    """Scores of the elements of examples: losses that fall in steps, and differ in difficulty."""
    hard = rng.beta(2.0, 2.0, size=(repeats, n, 1))
    return np.clip(hard + 0.3 * rng.normal(size=(repeats, n, elements)), 0.0, 1.0)


def losses_at(scores: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The share of the elements above each level, which falls along the levels."""
    return (scores[..., None] > levels).mean(axis=-2)


@pytest.mark.parametrize(("n", "alpha"), [(5, 0.2), (5, 0.5), (20, 0.05), (20, 0.3), (100, 0.01)])
@pytest.mark.parametrize("exact", [False, True])
def test_the_mean_risk_is_at_most_alpha(n: int, alpha: float, exact: bool) -> None:
    """Over draws of calibration examples and a new one; and not far below where it cannot jump."""
    repeats = 3000
    rng = np.random.default_rng([n, int(1000 * alpha), exact])
    scores = drawn(rng, repeats, n + 1)
    seen = np.empty(repeats)
    for k, own in enumerate(scores):
        if exact:  # sets of all elements of at least a threshold, which miss those below it
            flat = own[:n].ravel()
            level = highest_threshold(flat, np.full(flat.size, 1 / 6), n, alpha, None).level
            seen[k] = (own[n] < level).mean()
        else:
            losses = losses_at(own, LEVELS)
            level = control_risk(losses[:n], alpha, levels=LEVELS).level
            seen[k] = losses[n, np.searchsorted(LEVELS, level)]
    error = seen.std() / np.sqrt(repeats)
    assert seen.mean() <= alpha + 2.5 * error
    if exact:  # the scores are continuous, except those at the ends
        assert seen.mean() >= alpha - 2 / (n + 1) - 2.5 * error


@pytest.mark.parametrize(("n", "alpha", "delta"), [(20, 0.3, 0.2), (100, 0.2, 0.1)])
@pytest.mark.parametrize("monotone", [False, True])
def test_the_risk_exceeds_alpha_with_probability_delta_at_most(
    n: int, alpha: float, delta: float, monotone: bool
) -> None:
    """For all levels that pass at once; the true risk comes from a hundred thousand examples."""
    rng = np.random.default_rng([n, monotone])
    middle = 0.5

    def losses_of(size: tuple[int, ...]) -> np.ndarray:
        if monotone:
            return losses_at(drawn(rng, *size), LEVELS)
        noise = 0.04 * rng.normal(size=(*size, 1))
        return np.clip(np.abs(LEVELS - middle - noise) + 0.1 * rng.random((*size, 1)), 0, 1)

    truth = losses_of((1, 50_000))[0].mean(axis=0)
    order = None if monotone else np.argsort(losses_of((1, 50))[0].mean(axis=0), kind="stable")
    repeats, failures, certified = 1000, 0, 0
    for losses in losses_of((repeats, n)):
        found = control_risk(losses, alpha, levels=LEVELS, delta=delta, order=order)
        worst = truth[np.searchsorted(LEVELS, found.certified_levels)].max(initial=0.0)
        failures += worst > alpha + 1e-3
        certified += found.level is not None
    assert failures / repeats <= delta + 2.5 * np.sqrt(delta * (1 - delta) / repeats)
    assert certified > repeats / 2


def test_losses_that_are_not_monotone_pass_from_the_best_level_and_from_no_end() -> None:
    rng = np.random.default_rng(0)
    losses = np.clip(np.abs(LEVELS - 0.5) + 0.1 * rng.random((200, 1)), 0, 1)
    best_first = np.argsort(np.abs(LEVELS - 0.5), kind="stable")
    assert control_risk(losses, 0.2, delta=0.1, order=best_first).level is not None
    for order in (None, np.arange(len(LEVELS))):
        found = control_risk(losses, 0.2, delta=0.1, order=order)
        assert found.level is None
        assert found.risk is None
        assert found.words == "Nothing is certified: no level passed the test with 200 examples."


def test_several_risks_hold_at_once() -> None:
    rng = np.random.default_rng(0)
    one, two = (losses_at(drawn(rng, 1, 50)[0], LEVELS) for _ in range(2))
    alphas = (0.2, 0.4)
    for delta in (None, 0.1):
        both = control_risk([one, two], alphas, levels=LEVELS, delta=delta)
        alone = [
            control_risk(losses, a, levels=LEVELS, delta=delta).level
            for losses, a in zip((one, two), alphas, strict=True)
        ]
        assert both.level == max(alone)
        assert all(b <= a + 1e-9 for b, a in zip(both.bound, alphas, strict=True))
        assert both.alpha == alphas


def test_p_values_are_those_of_hoeffding_and_bentkus() -> None:
    n, alpha = 37, 0.3
    sums = np.linspace(0.0, n, 149)
    for total, found in zip(sums, p_values(sums, n, alpha), strict=True):
        r = min(total / n, alpha)
        kl = (r * np.log(r / alpha) if r else 0.0) + (
            (1 - r) * np.log((1 - r) / (1 - alpha)) if r < 1 else 0.0
        )
        tail = np.e * binom.cdf(np.ceil(total - 1e-9), n, alpha)
        assert found == pytest.approx(min(np.exp(-n * kl), tail, 1.0), rel=1e-9)
    assert (np.diff(p_values(sums, n, alpha)) >= -1e-15).all()


@pytest.mark.parametrize("alpha", [0.01, 0.1, 1 / 3, 0.7, 0.99])
@pytest.mark.parametrize("delta", [None, 0.05, 0.5])
def test_the_least_number_of_examples_is_the_least(alpha: float, delta: float | None) -> None:
    least = least_examples(alpha, delta)
    assert passes(np.zeros(1), least, alpha, delta)[0]
    assert least == 1 or not passes(np.zeros(1), least - 1, alpha, delta)[0]
    if least > 1:
        with pytest.raises(ValueError, match=f"losses must hold at least {least} examples"):
            control_risk(np.zeros((least - 1, 3)), alpha, delta=delta)


@pytest.mark.parametrize("delta", [None, 0.1])
def test_bound_is_the_least_alpha_that_certifies_a_level(delta: float | None) -> None:
    n = 60
    for total in (0.0, 1.0, 7.25, 30.0, 55.5):
        bound = bound_of(total, n, delta)
        if bound < 1:
            assert passes(np.array([total]), n, bound + 1e-9, delta)[0]
            assert not passes(np.array([total]), n, bound - 1e-3, delta)[0]


@pytest.mark.parametrize("delta", [None, 0.2])
@pytest.mark.parametrize("alpha", [0.1, 0.4, 0.95])
def test_the_highest_threshold_is_that_of_a_grid_of_all_scores(
    alpha: float, delta: float | None
) -> None:
    rng = np.random.default_rng(0)
    for n in (30, 61):
        scores = rng.normal(size=(n, 7)).round(1)  # with ties
        scores[rng.random(scores.shape) < 0.1] = -np.inf
        scores[rng.random(scores.shape) < 0.1] = np.inf
        found = highest_threshold(scores.ravel(), np.full(scores.size, 1 / 7), n, alpha, delta)
        levels = np.unique(np.append(scores, np.inf))[::-1]
        losses = (scores[:, :, None] < levels).mean(axis=1)
        grid = control_risk(losses, alpha, delta=delta)
        assert levels[int(grid.level)] == found.level
        assert grid.bound == pytest.approx(found.bound, abs=1e-9)


def test_without_elements_any_threshold_will_do() -> None:
    found = highest_threshold(np.zeros(0), np.zeros(0), 9, 0.1, None)
    assert (found.level, found.risk) == (np.inf, 0.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"losses": np.full((9, 2), 1.5)}, r"losses must lie in \[0, 1\], got 1.5"),
        ({"losses": np.full((9, 2), -0.5)}, r"losses must lie in \[0, 1\], got -0.5"),
        ({"losses": np.tile([0.0, 0.5], (9, 1))}, "losses must not increase along the levels"),
        ({"losses": np.full((9, 2), 0.5)}, "alpha must be at least 0.55 for these losses"),
        ({"losses": np.zeros(9)}, "losses must have shape"),
        ({"alpha": 0.0}, "alpha must be positive"),
        ({"alpha": 1.0}, "alpha must be below 1"),
        ({"alpha": 0.09}, r"at least 11 examples for alpha=0.09 \(n >= 1 / alpha - 1\), got 9"),
        ({"delta": 1.0}, "delta must be below 1"),
        ({"order": [1, 0]}, "order must be None without delta"),
        ({"levels": [1.0, 0.0]}, "levels must increase"),
        ({"levels": [1.0]}, "levels must have shape"),
    ],
)
def test_what_has_no_guarantee_is_refused(change: dict, words: str) -> None:
    good = {"losses": np.zeros((9, 2)), "alpha": 0.1}
    assert control_risk(**good).level == 0.0
    with pytest.raises(ValueError, match=words):
        control_risk(**(good | change))


def test_the_record_says_what_is_assumed() -> None:
    losses = np.zeros((30, 2))
    mean, sure = control_risk(losses, 0.1), control_risk(losses, 0.1, delta=0.1)
    assert (mean.sense, mean.assumption) == ("expectation", "exchangeable")
    assert sure.sense == "probability"
    assert "independent" in sure.assumption
    assert "independent" in sure.words
    assert sure.words.startswith("With probability 0.9 over draws of 30 calibration examples, ")
