"""Shapes, labels, dtypes, reductions and bad input: what crashed the file everybody copies."""

import copy
import pickle

import numpy as np
import pytest
from torch_cases import DEVICES, torch, value_and_gradient

import setwise as sw

t = sw.torch

HINGES = [
    t.LovaszHingeLoss,
    t.DecomposedHingeLoss,
    t.MarginRescalingLoss,
    t.SlackRescalingLoss,
]


def flat_value(scores, positive, loss="jaccard"):
    return sw.surrogates.LovaszHinge(loss)(np.ravel(positive), np.ravel(scores))


def draw(shape, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape), rng.random(shape) < 0.4


@pytest.mark.parametrize("shape", [(6,), (2, 3), (2, 3, 4), (2, 3, 4, 2), (2, 3, 2, 2, 2)], ids=str)
def test_one_to_five_dimensions(shape):
    scores, positive = draw(shape)
    value, gradient = value_and_gradient(t.LovaszHingeLoss(), scores, positive)
    np.testing.assert_allclose(value, flat_value(scores, positive))
    assert gradient.shape == shape
    values, _ = value_and_gradient(
        t.LovaszHingeLoss(per_image=True, reduction="none"), scores, positive
    )
    expected = [flat_value(x, y) for x, y in zip(scores, positive, strict=True)]
    np.testing.assert_allclose(values, expected)
    if len(shape) == 1:
        return
    values, _ = value_and_gradient(
        t.LovaszHingeLoss(per_class=True, reduction="none"), scores, positive
    )
    expected = [flat_value(scores[:, c], positive[:, c]) for c in range(shape[1])]
    np.testing.assert_allclose(values, expected)
    values, _ = value_and_gradient(
        t.LovaszHingeLoss(per_class=True, per_image=True, reduction="none"), scores, positive
    )
    expected = [
        [flat_value(scores[i, c], positive[i, c]) for c in range(shape[1])] for i in range(shape[0])
    ]
    np.testing.assert_allclose(values, expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("make", HINGES)
def test_memory_formats_agree(make, device):
    scores, positive = (torch.tensor(a) for a in draw((2, 3, 6, 6)))
    criterion = make(per_class=True, reduction="none")
    plain = value_and_gradient(criterion, scores, positive, device)
    last = {"memory_format": torch.channels_last}
    for x, y in [
        (scores.to(**last), positive.to(**last)),
        (scores.to(**last), positive),
        (torch.stack([scores, scores], -1)[..., 0], torch.stack([positive, positive], 0)[1]),
    ]:
        for one, two in zip(value_and_gradient(criterion, x, y, device), plain, strict=True):
            np.testing.assert_allclose(one, two, atol=1e-14)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("buckets", [None, 8192])
@pytest.mark.parametrize(
    "dtype",
    [
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
    ],
    ids=str,
)
def test_targets_of_every_dtype(dtype, buckets, device):
    scores, positive = draw((4, 25))
    criterion = t.LovaszHingeLoss(buckets=buckets)
    expected = value_and_gradient(criterion, scores.astype("f4"), positive, device)
    target = torch.tensor(positive).to(dtype)
    for one, two in zip(
        value_and_gradient(criterion, scores.astype("f4"), target, device), expected, strict=True
    ):
        np.testing.assert_array_equal(one, two)
    if dtype.is_signed:
        for one, two in zip(
            value_and_gradient(criterion, scores.astype("f4"), 2 * target - 1, device),
            expected,
            strict=True,
        ):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("make", HINGES)
@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0), (2, 0, 3)], ids=str)
def test_nothing_is_no_loss(shape, make, device):
    scores, positive = draw(shape)
    value, gradient = value_and_gradient(make(), scores, positive, device)
    assert value == 0
    assert gradient.shape == shape
    value, _ = value_and_gradient(make(per_image=True), scores, positive, device)
    assert value == 0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("make", HINGES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_nothing_but_void_is_no_loss(make, dtype, device):
    criterion = make(per_image=True, ignore_index=255, reduction="none")
    target = torch.full((2, 9), 255, dtype=torch.uint8)
    value, gradient = value_and_gradient(criterion, torch.randn(2, 9), target, device, dtype)
    assert (value == 0).all()
    assert (gradient == 0).all()


@pytest.mark.parametrize("make", HINGES)
def test_one_pixel(make):
    for positive in (True, False):
        value, gradient = value_and_gradient(make(), [[[[0.25]]]], [[[[positive]]]])
        sign = 1 if positive else -1
        hinge = make is t.LovaszHingeLoss or make is t.DecomposedHingeLoss
        expected = 1 - sign * 0.25 if hinge else 1 - 2 * sign * 0.25
        np.testing.assert_allclose(value, expected)
        assert gradient.ravel()[0] == -sign * (1 if hinge else 2)


def test_a_missing_channel_of_one_is_put_in():
    scores, positive = (torch.tensor(a) for a in draw((2, 1, 4, 4)))
    assert t.lovasz_hinge(scores, positive[:, 0]) == t.lovasz_hinge(scores, positive)


@pytest.mark.parametrize("device", DEVICES)
def test_reductions_and_weights(device):
    scores, positive = draw((2, 3, 10))
    weight = np.array([1.0, 2.0, 5.0])

    def value(**options):
        criterion = t.LovaszHingeLoss(per_class=True, **options).to(device)
        return value_and_gradient(criterion, scores, positive, device)[0]

    values = value(reduction="none")
    np.testing.assert_allclose(value(), values.mean())
    np.testing.assert_allclose(value(reduction="sum"), values.sum())
    np.testing.assert_allclose(value(reduction="none", weight=weight), values * weight)
    np.testing.assert_allclose(value(weight=weight), values @ weight / weight.sum())
    both = value(reduction="none", per_image=True)
    assert both.shape == (2, 3)
    np.testing.assert_allclose(
        value(per_image=True, weight=weight), (both @ weight).sum() / (2 * weight.sum())
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("make", HINGES)
def test_nan_is_not_hidden(make, device):
    scores, positive = draw((2, 8))
    scores[0, 3] = np.nan
    criterion = make(per_image=True, reduction="none")
    values, gradient = value_and_gradient(criterion, scores, positive, device)
    assert np.isnan(values[0])
    assert np.isnan(gradient[0]).any()
    assert np.isfinite(values[1])
    assert np.isfinite(gradient[1]).all()


def test_autocast():
    layer = torch.nn.Linear(4, 1)
    x, y = torch.randn(32, 4), torch.rand(32, 1) < 0.5
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = layer(x)
        assert logits.dtype == torch.bfloat16
        loss = t.lovasz_hinge(logits, y) + t.decomposed_hinge(logits, y)
    assert loss.dtype == torch.float32
    loss.backward()
    assert torch.isfinite(layer.weight.grad).all()


def test_half_gradients_survive_a_million_pixels():
    """Gains of 1e-6 are subnormal halves: they are scaled before they are rounded."""
    n = 1_000_000
    positive = torch.arange(n) % 2 == 0
    scores = torch.linspace(-1, 1, n)
    scale = 65536.0
    gradients = []
    for dtype in (torch.float16, torch.float64):
        x = scores.to(torch.float16).to(dtype).requires_grad_()
        (scale * t.lovasz_hinge(x, positive)).backward()
        gradients.append(x.grad.double())
    assert torch.isfinite(gradients[0]).all()
    torch.testing.assert_close(gradients[0].sum(), gradients[1].sum(), rtol=2e-3, atol=1e-3)
    assert (gradients[0] != 0).sum() == (gradients[1] != 0).sum()


def test_modules_can_be_copied_pickled_and_printed():
    scores, positive = (torch.tensor(a) for a in draw((2, 3, 5)))
    for module in (
        t.LovaszHingeLoss(per_class=True, weight=[1.0, 2.0, 3.0]),
        t.DecomposedHingeLoss(sw.losses.FBeta(2.0), per_image=True),
    ):
        expected = module(scores, positive)
        assert pickle.loads(pickle.dumps(module))(scores, positive) == expected
        assert copy.deepcopy(module)(scores, positive) == expected
    assert repr(module) == "DecomposedHingeLoss(FBeta(beta=2), per_image=True)"


MODULES = {
    name: kind
    for name, kind in vars(t).items()
    if isinstance(kind, type) and issubclass(kind, torch.nn.Module)
}
NEEDED = {
    "DecomposedHingeLoss": {"loss": "jaccard"},
    "MarginRescalingLoss": {"loss": "jaccard"},
    "SlackRescalingLoss": {"loss": "jaccard"},
    "MaskCalibrator": {"alpha": 0.1},
    "SetScore": {"loss": "jaccard", "n_classes": 3},
    "WithCrossEntropy": {"criterion": t.LovaszSoftmaxLoss()},
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_another_version_says_so(name, monkeypatch):
    module = MODULES[name](**NEEDED.get(name, {}))
    pickle.loads(pickle.dumps(module))  # of the same version: no warning
    origin = f"a stored {name} was made by version 0.0.7 of setwise, and this is version 0.0.8"
    monkeypatch.setattr(sw, "__version__", "0.0.7")
    stored = pickle.dumps(module)
    monkeypatch.setattr(sw, "__version__", "0.0.8")
    with pytest.warns(
        UserWarning, match="made by version 0.0.7"
    ) as caught:  # WithCrossEntropy holds another module
        again = pickle.loads(stored)
    assert str(caught[-1].message).startswith(origin)
    assert repr(again) == repr(module)
    unmarked = {key: value for key, value in vars(module).items() if key != "_made_by"}
    with pytest.warns(UserWarning, match="was made by an earlier version"):
        MODULES[name].__new__(MODULES[name]).__setstate__(unmarked)


def test_bad_input_in_one_sentence():
    x, y = torch.zeros(2, 3), torch.zeros(2, 3)
    with pytest.raises(TypeError, match="input must be a tensor, got list"):
        t.lovasz_hinge([0.0], y)
    with pytest.raises(TypeError, match="input must be float16"):
        t.lovasz_hinge(x.long(), y)
    with pytest.raises(ValueError, match=r"shape of input, \(2, 3\), got \(3, 2\)"):
        t.lovasz_hinge(x, y.T)
    for value in (0.5, 2, 255):
        with pytest.raises(ValueError, match="target must hold labels"):
            t.lovasz_hinge(x, y + value)
    with pytest.raises(ValueError, match="weight must be None unless per_class"):
        t.LovaszHingeLoss(weight=[1.0])
    with pytest.raises(ValueError, match="one entry for each of the classes"):
        t.lovasz_hinge(x, y, per_class=True, weight=[1.0, 2.0])
    with pytest.raises(ValueError, match="dimension of classes"):
        t.lovasz_hinge(x[0], y[0], per_class=True)
    with pytest.raises(ValueError, match="reduction must be"):
        t.LovaszHingeLoss(reduction="median")
    with pytest.raises(TypeError, match="ignore_index must be an integer"):
        t.LovaszHingeLoss(ignore_index=0.5)
    with pytest.raises(TypeError, match="per_image must be a bool"):
        t.LovaszHingeLoss(per_image=1)
    with pytest.raises(TypeError, match="buckets must be an integer or None"):
        t.LovaszHingeLoss(buckets="fast")
    with pytest.raises(ValueError, match="buckets must lie in"):
        t.LovaszHingeLoss(buckets=1)
    with pytest.raises(ValueError, match="buckets must be None unless"):
        t.LovaszHingeLoss("hamming", buckets=8192)
    with pytest.raises(ValueError, match="loss must be a loss of counts"):
        t.MarginRescalingLoss("early_detection")
    with pytest.raises(ValueError, match="scale must be"):
        t.MarginRescalingLoss(scale=0.0)
    with pytest.raises(ValueError, match="loss must be one of"):
        t.LovaszHingeLoss("no such loss")
    with pytest.raises(ValueError, match="elements"):
        t.lovasz_hinge(x, y, sw.losses.Hamming([1.0, 2.0]))
