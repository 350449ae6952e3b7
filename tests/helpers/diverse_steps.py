"""What holds of every diverse list, by brute force over labellings and over lists."""

from __future__ import annotations

import numpy as np
import pytest
import reference

import setwise as sw
from setwise import diversities as d
from setwise import fields
from setwise.inference import DiverseResult


def check_steps(field: fields.Field, diversity: d.Diversity, result: DiverseResult) -> None:
    """Every step is within its gap of the best one, and its numbers are what they say."""
    for t, labels in enumerate(result.labelings):
        earlier = result.labelings[:t]
        best = reference.best_step(field, diversity, earlier)
        score = field.energy(labels) - diversity.gain_of(labels, earlier, field.n_labels)
        slack = 1e-9 * max(1.0, abs(score))
        assert result.values[t] == field.energy(labels)
        assert result.values[t] - result.gains[t] == pytest.approx(score, abs=1e-9)
        assert result.bounds[t] <= best + slack
        assert best <= score + slack
        assert score <= best + result.gaps[t] + slack
        if result.gaps[t] == 0:
            assert score == pytest.approx(best, abs=slack)


def check_guarantee(
    field: fields.Field, diversity: d.Diversity, m: int, method: str = "auto"
) -> None:
    """The list meets its guarantee against the best of all lists, for the shifted score."""
    result = sw.diverse(field, m, diversity, method=method)
    claim = result.guarantee
    assert claim is not None
    assert claim.n_items == m
    assert claim.slack == pytest.approx(result.gaps.sum())
    score = m * claim.shift - result.values.sum()
    score += diversity.value(result.labelings, field.n_labels)
    assert claim.score == pytest.approx(score, abs=1e-9)
    best = reference.best_list(field, diversity, m, claim.shift)
    assert claim.score >= claim.factor * best - claim.slack - 1e-9
    assert claim.factor >= 1.0 - 1.0 / np.e
    assert 0.0 <= claim.alpha <= 1.0
    assert claim.score >= (1.0 - (1.0 - claim.alpha / m) ** m) * best - 1e-9
    assert claim.score - 1e-9 <= best <= claim.bound + 1e-9
    assert 0.0 <= claim.ratio <= 1.0 + 1e-9
    # the relative form of Section 5, for the score without the shift
    own, most = score - m * claim.shift, best - m * claim.shift
    needed = claim.factor * (most - claim.f_min) - claim.slack
    assert own - claim.f_min >= needed - 1e-9
