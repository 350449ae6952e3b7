"""Losses of scores in torch: every registered loss by brute force and beside NumPy's surrogates."""

import warnings

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from loss_registry import LOSSES
from torch_cases import PLACES, go_to, torch, value_and_gradient

import setwise as sw

t = sw.torch

MODULES = {
    "lovasz": t.LovaszHingeLoss,
    "decomposed": t.DecomposedHingeLoss,
    "margin": t.MarginRescalingLoss,
    "slack": t.SlackRescalingLoss,
}
OF_NUMPY = {
    "lovasz": sw.surrogates.LovaszHinge,
    "decomposed": sw.surrogates.DecomposedHinge,
    "margin": sw.surrogates.MarginRescaling,
    "slack": sw.surrogates.SlackRescaling,
}


def definition(surrogate, values, margins):
    if surrogate == "lovasz":
        case = 1 if reference.is_increasing(values) else 2
        return reference.lovasz_hinge(values, margins, case)
    if surrogate == "margin":
        return reference.margin_rescaling(values, margins)
    return reference.slack_rescaling(values, margins)


def batches(listed, seed=0):
    """All truths of one size, each with three rows of scores."""
    rng = np.random.default_rng(seed)
    truths = {}
    for positive in listed.truths():
        truths.setdefault(len(positive), []).append(positive)
    for rows in truths.values():
        positive = np.repeat(np.array(rows), 3, axis=0)
        yield positive, 1.5 * rng.standard_normal(positive.shape)


def numpy_answer(surrogate, loss, positive, scores):
    """What the NumPy surrogate says, or None where it refuses the loss."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return OF_NUMPY[surrogate](loss).value_and_gradient(positive, scores)
    except ValueError:
        return None


@pytest.mark.filterwarnings("ignore:.*runs through its gains on the host")
@pytest.mark.filterwarnings("ignore:the submodular part of")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("surrogate", MODULES)
@pytest.mark.parametrize("name", LOSSES)
def test_registered_losses_by_brute_force(name, surrogate, place, monkeypatch):
    listed = LOSSES[name]
    try:
        criterion = MODULES[surrogate](listed.loss, per_image=True, reduction="none")
    except ValueError:
        assert surrogate != "decomposed"
        return
    device = go_to(place, monkeypatch)
    for positive, scores in batches(listed):
        expected = numpy_answer(surrogate, listed.loss, positive, scores)
        if expected is None:
            with pytest.raises((ValueError, NotImplementedError)):
                value_and_gradient(criterion, scores, positive, device)
            continue
        try:
            values, gradient = value_and_gradient(criterion, scores, positive, device)
        except NotImplementedError:
            assert place == "plain"  # there is no host to ask
            continue
        np.testing.assert_allclose(values, expected[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-7, atol=1e-9)
        if surrogate != "decomposed":
            margins = np.where(positive, scores, -scores)
            for truth in np.unique(positive, axis=0):
                here = (positive == truth).all(axis=1)
                table = listed.table(truth)
                if surrogate == "lovasz" and not reference.is_submodular(table):
                    continue  # a callable that says nothing of itself is taken at its word
                brute = definition(surrogate, table, margins[here])
                np.testing.assert_allclose(values[here], brute, rtol=1e-9, atol=1e-9)


HALF_ULP = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float32: 2.0**-24}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", HALF_ULP, ids=str)
@pytest.mark.parametrize(
    "criterion",
    [
        t.LovaszHingeLoss(per_image=True),
        t.LovaszHingeLoss("exponential", per_image=True),
        t.LovaszHingeLoss(sw.losses.TruncatedModular(6.0), per_image=True),
        t.DecomposedHingeLoss("dice", per_image=True),
        t.MarginRescalingLoss("dice", per_image=True),
        t.SlackRescalingLoss("jaccard", per_image=True),
    ],
    ids=repr,
)
def test_every_dtype_within_its_precision(criterion, dtype, place, monkeypatch):
    """The logits are rounded once, by the caller; after that only the gradient is."""
    device = go_to(place, monkeypatch)
    rng = np.random.default_rng(5)
    scores = torch.tensor(rng.standard_normal((4, 60))).to(dtype)
    positive = rng.random((4, 60)) < 0.4
    expected, slopes = value_and_gradient(criterion, scores.double(), positive)
    values, gradient = value_and_gradient(criterion, scores, positive, device)
    np.testing.assert_allclose(values, expected, rtol=1e-5)
    ties = 2.0**-24 / HALF_ULP[dtype] > 0.5  # coarse scores tie: each order has its own gradient
    if ties:
        np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-7)
    total = (gradient * np.where(positive, -1, 1)).sum()
    expected_total = (slopes * np.where(positive, -1, 1)).sum()
    np.testing.assert_allclose(total, expected_total, rtol=4 * HALF_ULP[dtype] + 1e-5)
    x = scores.to(device).requires_grad_()
    loss = criterion(x, torch.tensor(positive).to(device))
    loss.backward()
    assert loss.dtype == torch.float32
    assert x.grad.dtype == dtype


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.integers(1, 40), st.integers(1, 3))
def test_plain_torch_equals_the_kernels(seed, n, rows):
    """Ties among the scores, all-positive and all-negative sets, void elements."""
    from setwise.torch._operators._dispatch import SURROGATES
    from setwise.torch._reference._hinge import Sets

    rng = np.random.default_rng(seed)
    scores = torch.tensor(rng.integers(-6, 7, (rows, n)) / 2.0)
    target = torch.tensor(rng.choice([0, 1, 255], (rows, n), p=[0.6, 0.3, 0.1]))
    for surrogate, loss in [
        ("lovasz", sw.losses.Jaccard()),
        ("lovasz", sw.losses.Exponential(0.3)),
        ("decomposed", sw.losses.Dice()),
        ("decomposed", sw.losses.FBeta(2.0)),
        ("margin", sw.losses.FBeta(0.5)),
        ("slack", sw.losses.Dice()),
    ]:
        options = {"per_image": True, "reduction": "none", "ignore_index": 255}
        values, _ = value_and_gradient(MODULES[surrogate](loss, **options), scores, target)
        plain = SURROGATES[surrogate].plain(loss, Sets.read(scores, target, 255.0), 1.0)
        np.testing.assert_allclose(plain[0].numpy(), values, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("surrogate", MODULES)
def test_void_elements_belong_to_no_set(surrogate, place, monkeypatch):
    device = go_to(place, monkeypatch)
    rng = np.random.default_rng(1)
    scores, target = rng.standard_normal((3, 30)), rng.integers(0, 2, (3, 30))
    void = rng.random((3, 30)) < 0.3
    void[1] = True
    loss = "dice" if surrogate == "decomposed" else "jaccard"
    make = MODULES[surrogate]
    criterion = make(loss, per_image=True, reduction="none", ignore_index=-100)
    values, gradient = value_and_gradient(
        criterion, np.where(void, np.nan, scores), np.where(void, -100, target), device
    )
    assert values[1] == 0
    assert (gradient[void] == 0).all()
    for i in (0, 2):
        kept = ~void[i]
        expected, slopes = value_and_gradient(make(loss), scores[i, kept], target[i, kept])
        np.testing.assert_allclose(values[i], expected)
        np.testing.assert_allclose(gradient[i, kept], slopes)


def test_any_other_loss_runs_on_the_host_and_says_so():
    scores, positive = torch.randn(4, 6), torch.rand(4, 6) < 0.5
    criterion = t.LovaszHingeLoss("early_detection", per_image=True, reduction="none")
    with pytest.warns(UserWarning, match="on the host"):
        values = criterion(scores, positive)
    expected = sw.surrogates.LovaszHinge("early_detection")(positive.numpy(), scores.numpy())
    np.testing.assert_allclose(values.numpy(), expected, rtol=1e-5)


def test_dice_has_no_lovasz_hinge_and_the_error_names_what_it_has():
    for make in (t.LovaszHingeLoss, lambda loss: t.lovasz_hinge(torch.zeros(2), None, loss)):
        with pytest.raises(ValueError, match="use DecomposedHingeLoss"):
            make("dice")


def test_float32_gradients_at_four_million_pixels():
    """Within 1e-5 (median) of float64, where the usual code is off by percents at a million."""
    rng = np.random.default_rng(0)
    scores = torch.tensor(rng.standard_normal(4_000_000).astype(np.float32))
    positive = torch.tensor(rng.random(4_000_000) < 0.3)
    criterion = t.LovaszHingeLoss()
    _, exact = value_and_gradient(criterion, scores.double(), positive)
    _, gradient = value_and_gradient(criterion, scores, positive)
    wrong = exact != 0
    off = np.abs(gradient[wrong] - exact[wrong]) / np.abs(exact[wrong])
    assert np.median(off) < 1e-5
    assert np.abs(gradient - exact).sum() < 1e-5 * np.abs(exact).sum()
