"""Label maps against sums over all truths and all maps, and the laws of their bounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

import setwise as sw

LOSSES = {
    "jaccard": (None, sw.losses.Jaccard()),
    "dice": (1.0, sw.losses.Dice()),
    "f2": (4.0, sw.losses.FBeta(2.0)),
    "f1/2": (0.25, sw.losses.FBeta(0.5)),
}


def ratio(beta2: float | None, truth: np.ndarray, mask: np.ndarray) -> float:
    """The score of a mask, 1 where both are empty."""
    hits = np.sum(truth & mask)
    below = np.sum(truth | mask) if beta2 is None else beta2 * truth.sum() + mask.sum()
    return 1.0 if below == 0 else (1.0 if beta2 is None else 1 + beta2) * hits / below


def expected_losses(beta2, p, present=None):
    """The expected loss of every mask of a class, by the sum over all truths."""
    masks = np.array(list(itertools.product([False, True], repeat=len(p))), bool)
    if present is None:
        weights = np.where(masks, p, 1 - p).prod(1)
    else:
        from setwise.decisions._presence import believed

        q, c, there = believed(p, np.zeros(len(p), int), np.array([present]))
        weights = np.where(masks, c * q, 1 - c * q).prod(1) / c
        weights[0] = 1 - there[0]
    return {
        tuple(mask): 1 - sum(w * ratio(beta2, y, mask) for w, y in zip(weights, masks, strict=True))
        for mask in masks
    }


def risks(beta2, p, weights, presence=None):
    """The expected loss of every label map."""
    n, n_classes = p.shape
    present = [None] * n_classes if presence is None else presence
    tables = [expected_losses(beta2, p[:, c], present[c]) for c in range(n_classes)]
    share = weights / weights.sum()
    return {
        labels: sum(
            share[c] * tables[c][tuple(label == c for label in labels)] for c in range(n_classes)
        )
        for labels in itertools.product(range(n_classes), repeat=n)
    }


def chances(rng: np.random.Generator, n: int, n_classes: int) -> np.ndarray:
    p = rng.dirichlet(np.full(n_classes, rng.choice([0.2, 1.0, 5.0])), n)
    if rng.random() < 0.3:
        p[0] = np.eye(n_classes)[rng.integers(n_classes)]
    if n > 1 and rng.random() < 0.3:
        p[1] = p[0]
    return p


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("gated", [False, True])
def test_against_all_truths_and_all_maps(name, gated):
    beta2, loss = LOSSES[name]
    rng = np.random.default_rng(0)
    best_found, cases = 0, 30
    for _ in range(cases):
        n, n_classes = rng.integers(1, 4, 2)
        p, weights = chances(rng, n, n_classes), rng.random(n_classes) + 0.05
        presence = rng.random(n_classes) if gated else None
        found = sw.decide(p, loss, classes="exclusive", weights=weights, presence=presence)
        every = risks(beta2, p, weights, presence)
        assert found.expected == pytest.approx(every[tuple(found.labels.tolist())], abs=found.error)
        assert found.bound <= min(every.values()) + 1e-12
        assert found.expected - min(every.values()) <= found.regret_bound + found.error
        assert found.of_classes @ (weights / weights.sum()) == pytest.approx(found.expected)
        close = found.expected - min(every.values()) <= found.error
        best_found += close
        assert close or not found.exact
    assert best_found >= cases - 2


@given(st.integers(0, 2**32 - 1), st.sampled_from(["jaccard", "dice"]), st.booleans())
@example(1545, "jaccard", True)  # two maps that are nearly equally good
def test_permutations_change_nothing(seed, loss, rows):
    rng = np.random.default_rng(seed)
    n, n_classes = rng.integers(2, 60), rng.integers(2, 5)
    p = rng.dirichlet(np.ones(n_classes), (2, n)).transpose(0, 2, 1)
    sets = "rows" if rows else "cells"
    found = sw.decide(p, loss, classes="exclusive", sets=sets)
    pixels, names = rng.permutation(n), rng.permutation(n_classes)
    other = sw.decide(p[:, names][:, :, pixels], loss, classes="exclusive", sets=sets)
    assert np.array_equal(names[other.labels], found.labels[:, pixels])
    assert other.expected == pytest.approx(found.expected, abs=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["jaccard", "dice"])
def test_beats_the_most_probable_classes_and_keeps_the_bound(loss, dtype):
    rng = np.random.default_rng(1)
    for shape in ((1, 3, 40, 50), (2, 7, 90, 80)):
        scores = rng.normal(size=shape) * 2 + np.linspace(2, 0, shape[1])[None, :, None, None]
        p = np.exp(scores)
        p = (p / p.sum(1, keepdims=True)).astype(dtype)
        ours = sw.decide(p, loss, classes="exclusive")
        likely = np.eye(shape[1], dtype=bool)[p.argmax(1)].transpose(3, 0, 1, 2)
        classes = p.transpose(1, 0, 2, 3).reshape(shape[1], -1)
        theirs = np.mean(
            [
                of_mask(loss, x, z)
                for x, z in zip(classes, likely.reshape(shape[1], -1), strict=True)
            ]
        )
        mine = np.eye(shape[1], dtype=bool)[ours.labels].transpose(3, 0, 1, 2)
        own = [
            of_mask(loss, x, z) for x, z in zip(classes, mine.reshape(shape[1], -1), strict=True)
        ]
        assert ours.expected == pytest.approx(np.mean(own), abs=1e-3)
        assert ours.expected < theirs - 0.002
        alone = np.mean([sw.decide(x, loss).expected for x in classes])
        assert alone - 0.02 <= ours.bound <= ours.expected
        again = sw.decide(p, loss, classes="exclusive", n_jobs=1)
        assert np.array_equal(again.labels, ours.labels)
        assert again.expected == ours.expected
        assert again.bound == ours.bound


def of_mask(loss: str, p: np.ndarray, mask: np.ndarray) -> float:
    """The loss of a mask at the expected sizes, which differs by the inverse of its size."""
    p = p.astype(float)
    hits, m, k = p[mask].sum(), p.sum(), mask.sum()
    return 1 - (hits / (m + k - hits) if loss == "jaccard" else 2 * hits / (m + k))


def test_expectations_are_those_of_masks():
    """The quadrature from moments equals the one over elements."""
    rng = np.random.default_rng(2)
    for n in (1, 3, 50, 3000):
        p = rng.random(n) ** rng.choice([0.1, 1.0, 8.0])
        both = np.stack([1 - p, p], 1)
        for loss in LOSSES.values():
            best = sw.decide(p, loss[1])
            found = sw.decide(both, loss[1], classes="exclusive", weights=[0, 1])
            assert found.expected == pytest.approx(best.expected, abs=1e-4 + 0.05 / n)
            assert found.expected >= best.expected - found.error
            assert found.bound <= best.expected + 1e-12


def test_ignored_elements_ties_one_class_and_nothing():
    p = np.full((2, 4, 3), 0.25)
    void = np.array([[True, False, False], [True, True, True]])
    found = sw.decide(p, "dice", classes="exclusive", ignore=void, sets="rows")
    assert np.array_equal(found.labels == -1, void)
    assert found.expected[1] == 0
    assert found.exact[1]
    with_noise = p.copy()
    with_noise[0, :, 0] = [0.7, 0.1, 0.1, 0.1]
    same = sw.decide(with_noise, "dice", classes="exclusive", ignore=void, sets="rows")
    assert np.array_equal(same.labels, found.labels)
    assert np.array_equal(same.expected, found.expected)
    one = sw.decide(np.ones((5, 1)), "jaccard", classes="exclusive")
    assert one.labels.tolist() == [0] * 5
    assert one.exact
    assert one.expected == pytest.approx(0, abs=1e-8)
    assert sw.decide(np.ones((0, 3)), "jaccard", classes="exclusive").labels.shape == (0,)
    assert (
        sw.decide(np.ones((0, 3, 4)), "jaccard", classes="exclusive", sets="rows").exact.size == 0
    )


def test_presence_empties_a_class():
    p = np.array([[0.6, 0.4]] * 8)
    assert 1 in sw.decide(p, "jaccard", classes="exclusive").labels
    gone = sw.decide(p, "jaccard", classes="exclusive", presence=[1.0, 0.05])
    assert gone.labels.tolist() == [0] * 8


@pytest.mark.parametrize("name", LOSSES)
def test_classes_that_are_present_against_all_truths_and_all_maps(name):
    beta2, loss = LOSSES[name]
    from setwise.decisions._presence import believed

    rng = np.random.default_rng(3)
    best_found, cases = 0, 25
    for _ in range(cases):
        n, n_classes = rng.integers(1, 4, 2)
        p, weights = chances(rng, n, n_classes), rng.random(n_classes) + 0.05
        presence = rng.random(n_classes)
        found = sw.decide(p, loss, classes="present", weights=weights, presence=presence)
        scores, there = [], np.empty(n_classes)
        truths = np.array(list(itertools.product([False, True], repeat=n)), bool)
        for c in range(n_classes):
            q, scale, own = believed(p[:, c], np.zeros(n, int), presence[c : c + 1])
            chance = np.where(truths, scale * q, 1 - scale * q).prod(1) / scale
            there[c] = own[0]
            scores.append(
                {
                    tuple(mask): sum(
                        w * ratio(beta2, y, mask)
                        for w, y in zip(chance, truths, strict=True)
                        if y.any()
                    )
                    for mask in truths
                }
            )
        every = {
            labels: 1
            - sum(
                weights[c] * scores[c][tuple(label == c for label in labels)]
                for c in range(n_classes)
            )
            / (weights @ there)
            for labels in itertools.product(range(n_classes), repeat=n)
        }
        assert found.expected == pytest.approx(every[tuple(found.labels.tolist())], abs=found.error)
        assert found.bound <= min(every.values()) + 1e-12
        shares = weights * there / (weights @ there)
        assert np.nansum(found.of_classes * shares) == pytest.approx(found.expected, abs=1e-7)
        close = found.expected - min(every.values()) <= found.error
        best_found += close
        assert close or not found.exact
    assert best_found >= cases - 2
    with pytest.raises(ValueError, match="presence must be given for classes='present'"):
        sw.decide(p, loss, classes="present")
    with pytest.raises(ValueError, match="presence must be given for classes='present'"):
        sw.torch.decide(torch.zeros(1, 2, 3), loss, classes="present")
    none = sw.decide(p, loss, classes="present", presence=np.zeros(n_classes))
    assert none.expected == 0


def test_tensors_give_what_arrays_give():
    logits = torch.randn(
        2, 4, 9, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    target = torch.zeros(2, 9, 7, dtype=torch.int64)
    target[:, :2] = 255
    weight = torch.tensor([1.0, 2.0, 0.5, 1.0])
    p = torch.softmax(logits, 1).numpy()
    for per_image in (False, True):
        found = sw.torch.decide(
            logits,
            "jaccard",
            classes="exclusive",
            per_image=per_image,
            target=target,
            ignore_index=255,
            weight=weight,
        )
        known = sw.decide(
            p,
            "jaccard",
            classes="exclusive",
            sets="rows" if per_image else "cells",
            ignore=(target == 255).numpy(),
            weights=weight.numpy(),
        )
        assert found.labels.numpy()[:, 2:].tolist() == known.labels[:, 2:].tolist()
        assert (found.labels[:, :2] == 255).all()
        assert found.expected.numpy() == pytest.approx(known.expected)
        assert found.bound.numpy() == pytest.approx(known.bound)
        assert (found.regret_bound >= 0).all()
    half = sw.torch.decide(logits.half(), "dice", classes="exclusive")
    assert half.labels.shape == (2, 9, 7)


def test_refuses_what_could_be_confused():
    p = np.full((2, 3, 4), 1 / 3)
    with pytest.raises(ValueError, match="must sum to 1"):
        sw.decide(p * 2, "jaccard", classes="exclusive")
    with pytest.raises(ValueError, match="most probable class is optimal"):
        sw.decide(p, "hamming", classes="exclusive")
    with pytest.raises(ValueError, match=r"lie in \[0, 1\]"):
        sw.decide(np.where(p > 0, np.nan, p), "jaccard", classes="exclusive")
    with pytest.raises(ValueError, match="offsets must be None"):
        sw.decide(p, "jaccard", classes="exclusive", offsets=[0, 1])
    with pytest.raises(ValueError, match="ignore must be None for separate"):
        sw.decide([0.1, 0.2], "jaccard", ignore=[True, False])
    with pytest.raises(ValueError, match=r"weights must have shape"):
        sw.decide(p, "jaccard", classes="exclusive", weights=[1.0])
    with pytest.raises(ValueError, match="must not all be 0"):
        sw.decide(p, "jaccard", classes="exclusive", weights=[0.0, 0.0, 0.0])
    logits = torch.zeros(1, 3, 2, 2)
    with pytest.raises(ValueError, match="activation must be 'softmax' or 'none'"):
        sw.torch.decide(logits, "jaccard", classes="exclusive", activation="sigmoid")
    with pytest.raises(ValueError, match="per_class must be False"):
        sw.torch.decide(logits, "jaccard", classes="exclusive", per_class=True)
    with pytest.raises(ValueError, match="weight must be None for separate"):
        sw.torch.decide(logits, "jaccard", weight=torch.ones(3))
    with pytest.raises(ValueError, match="must sum to 1"):
        sw.torch.decide(logits + 0.5, "jaccard", classes="exclusive", activation="none")
