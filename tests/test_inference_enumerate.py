"""Trying all labellings."""

import field_registry
import numpy as np
import pytest
import reference
from searches import enumerate_labels

from setwise import fields
from setwise.inference._conditioning._magnitude import trivial_bound
from setwise.inference._map import _enumerate
from setwise.inference._map._result import MapProgress


@pytest.mark.parametrize("name", field_registry.FIELDS)
def test_enumeration_is_exact(name: str) -> None:
    field = field_registry.of_seed(name, 0)
    result = enumerate_labels(field)
    least = reference.least_energy(field)
    assert result.value == pytest.approx(least, rel=1e-12, abs=1e-12)
    assert result.value == result.bound == field.energy(result.labels)
    assert result.exact
    assert result.converged
    assert result.method == "enumerate"
    assert result.labels.dtype == np.int64


@pytest.mark.parametrize("rows", [1, 5, 7, 100])
def test_chunks_do_not_matter(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    field = field_registry.of_seed("forbidden-labels", 3)
    whole = enumerate_labels(field)
    monkeypatch.setattr(_enumerate, "BATCH", rows * field.n_variables)
    chunked = enumerate_labels(field)
    assert chunked.value == whole.value
    assert np.array_equal(chunked.labels, whole.labels)


def test_forbidden_labels_are_not_counted() -> None:
    unary = np.full((40, 3), np.inf)
    unary[:, 1] = 0.0
    unary[:10] = np.arange(3.0)
    result = enumerate_labels(fields.Field(unary))
    assert result.value == 0.0
    assert result.labels.tolist() == [0] * 10 + [1] * 30


def test_of_equals_the_first() -> None:
    assert enumerate_labels(fields.Field(np.zeros((3, 2)))).labels.tolist() == [0, 0, 0]


def test_too_many_labellings_are_refused() -> None:
    with pytest.raises(ValueError, match=r"at most 2e\+07 labellings, got 33554432"):
        enumerate_labels(fields.Field(np.zeros((25, 2))))
    with pytest.raises(ValueError, match="got over 1e15"):
        enumerate_labels(fields.Field(np.zeros((10_000, 5))))


def test_a_callback_ends_it_with_the_least_values_of_the_terms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_enumerate, "BATCH", 60)
    seen: list[MapProgress] = []

    def stop(progress: MapProgress) -> bool:
        seen.append(progress)
        return len(seen) == 2

    field = field_registry.of_seed("potts-on-three-labels", 0)
    result = enumerate_labels(field, callback=stop)
    assert result.interrupted
    assert not result.converged
    assert not result.exact
    assert result.bound == trivial_bound(field) == seen[-1].bound
    assert type(result.bound) is float
    assert result.value == field.energy(result.labels) == seen[-1].value
    assert [progress.n_iter for progress in seen] == [1, 2]


def test_the_last_round_tells_the_answer() -> None:
    seen: list[MapProgress] = []
    field = field_registry.of_seed("potts-on-three-labels", 0)
    result = enumerate_labels(field, callback=lambda now: seen.append(now) or True)
    assert not result.interrupted
    assert [(now.n_iter, now.value, now.bound) for now in seen] == [(1, result.value, result.bound)]


def test_ctrl_c_keeps_the_best_so_far() -> None:
    def interrupt(progress: MapProgress) -> None:
        raise KeyboardInterrupt

    field = fields.Field(np.random.default_rng(0).normal(size=(18, 2)))
    result = enumerate_labels(field, callback=interrupt)
    assert result.interrupted
    assert result.value == field.energy(result.labels)
