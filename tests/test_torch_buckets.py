"""Counting instead of sorting: the bound of the docstring, and where it is exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_cases import PLACES, go_to, torch, value_and_gradient

import setwise as sw

t = sw.torch


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    "loss",
    ["jaccard", "exponential", "truncated_modular", sw.losses.Exponential(0.01)],
    ids=str,
)
def test_hinge_within_half_a_width_times_the_gains(loss, dtype, place, monkeypatch):
    device = go_to(place, monkeypatch)
    rng = np.random.default_rng(0)
    for buckets in (2, 17, 256, 8192):
        for share in (0.0, 0.02, 0.5, 1.0):
            scores = torch.tensor(2 * rng.standard_normal((3, 500)), dtype=dtype)
            positive = rng.random((3, 500)) < share
            options = {"per_image": True, "reduction": "none"}
            exact, _ = value_and_gradient(
                t.LovaszHingeLoss(loss, **options), scores, positive, device
            )
            criterion = t.LovaszHingeLoss(loss, buckets=buckets, **options)
            value, gradient = value_and_gradient(criterion, scores, positive, device)
            errors = 1 - np.where(positive, 1, -1) * scores.double().numpy()
            width = errors.max(axis=1).clip(0) / buckets
            assert (np.abs(value - exact) <= width / 2 + 1e-5).all()
            # The gains of a chain sum to the loss of all violators, and none is negative.
            slopes = gradient * np.where(positive, -1, 1)
            assert (slopes >= 0).all()
            predicted = errors > 0
            expected = [
                sw.losses.get(loss)(y, y ^ wrong)
                for y, wrong in zip(positive, predicted, strict=True)
            ]
            np.testing.assert_allclose(slopes.sum(axis=1), expected, rtol=1e-4)


@pytest.mark.parametrize("place", PLACES)
def test_the_gradient_is_a_subgradient_at_the_rounded_errors(place, monkeypatch):
    """<s, mu> <= L(s) for all s, and <s, mu> is within the bound of L at the scores themselves."""
    device = go_to(place, monkeypatch)
    rng = np.random.default_rng(1)
    scores, positive = rng.standard_normal(300).astype("f4"), rng.random(300) < 0.3
    sign = np.where(positive, 1, -1)
    criterion = t.LovaszHingeLoss(buckets=16)
    _, gradient = value_and_gradient(criterion, scores, positive, device)
    hinge = sw.surrogates.LovaszHinge("jaccard")
    gains = -sign * gradient
    for other in (scores, *rng.standard_normal((20, 300))):
        errors = np.maximum(1 - sign * other, 0)
        assert errors @ gains <= hinge(positive, other.astype(float)) + 1e-6
    errors = np.maximum(1 - sign * scores, 0)
    width = errors.max() / 16
    assert errors @ gains >= hinge(positive, scores) - width - 1e-6


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("loss", ["jaccard", "exponential"])
def test_halves_are_exact(loss, dtype, place, monkeypatch):
    """Every value of g y is a bucket of its own, however few buckets were asked for."""
    device = go_to(place, monkeypatch)
    rng = np.random.default_rng(2)
    scores = torch.tensor(3 * rng.standard_normal((2, 2000))).to(dtype)
    scores[0, :4] = torch.tensor([0.0, -0.0, 1.0, -1.0])
    positive = rng.random((2, 2000)) < 0.3
    options = {"per_image": True, "reduction": "none"}
    exact, _ = value_and_gradient(
        t.LovaszHingeLoss(loss, **options), scores.double(), positive, "cpu"
    )
    criterion = t.LovaszHingeLoss(loss, buckets=2, **options)
    value, gradient = value_and_gradient(criterion, scores, positive, device)
    np.testing.assert_allclose(value, exact, rtol=1e-6)
    # A subgradient of a piecewise linear function whose pieces pass through s = 0: <s, mu> is L.
    errors = np.maximum(1 - np.where(positive, 1, -1) * scores.double().numpy(), 0)
    gains = -np.where(positive, 1, -1) * gradient
    ulp = 2.0**-8 if dtype == torch.bfloat16 else 2.0**-10
    np.testing.assert_allclose((errors * gains).sum(axis=1), exact, rtol=ulp)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("buckets", [4, 64, 8192])
def test_softmax_within_half_a_width(buckets, place, monkeypatch):
    device = go_to(place, monkeypatch)
    rng = np.random.default_rng(3)
    logits, target = 2 * rng.standard_normal((2, 4, 300)), rng.integers(0, 4, (2, 300))
    target[0, :20] = 255
    for dtype in (torch.float32, torch.float64):
        for per_image in (False, True):
            options = {"per_image": per_image, "ignore_index": 255, "reduction": "none"}
            exact, _ = value_and_gradient(
                t.LovaszSoftmaxLoss(**options), logits, target, device, dtype
            )
            value, _ = value_and_gradient(
                t.LovaszSoftmaxLoss(buckets=buckets, **options),
                logits,
                target,
                device,
                dtype,
            )
            assert (np.abs(value - exact) <= 0.5 / buckets + 1e-6).all()


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.integers(0, 60), st.sampled_from([2, 5, 64]))
def test_the_kernel_counts_as_plain_torch_does(seed, n, buckets):
    from setwise.torch._cpu import in_buckets
    from setwise.torch._reference._buckets import bucketed
    from setwise.torch._reference._hinge import Sets

    rng = np.random.default_rng(seed)
    scores = torch.tensor(rng.integers(-8, 9, (2, n)) / 4, dtype=torch.float32)
    target = torch.tensor(rng.choice([0, 1, 255], (2, n), p=[0.6, 0.3, 0.1]))
    for loss in (sw.losses.Jaccard(), sw.losses.Exponential(0.1)):
        values, _ = in_buckets(loss, scores, target, 255.0, buckets)
        plain = bucketed(loss, Sets.read(scores, target, 255.0), buckets, None)
        torch.testing.assert_close(values, plain[0], rtol=1e-5, atol=1e-5)
        half = in_buckets(loss, scores.half(), target, 255.0, buckets)
        exact = bucketed(loss, Sets.read(scores, target, 255.0), buckets, torch.float16)
        for one, two in zip(half, exact, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)


def test_random_scores_are_far_below_the_bound():
    """A value at a million random scores within 1e-6 of the exact one, far below its bound."""
    rng = np.random.default_rng(4)
    scores = torch.tensor(rng.standard_normal(1_000_000).astype("f4"))
    positive = torch.tensor(rng.random(1_000_000) < 0.3)
    exact = t.lovasz_hinge(scores, positive)
    value = t.lovasz_hinge(scores, positive, buckets=8192)
    assert abs(value - exact) < 1e-6
