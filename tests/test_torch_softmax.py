"""Lovász-softmax: a definition written out class by class, its options, and its bounds."""

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from loss_registry import LOSSES
from torch_cases import PLACES, go_to, torch, value_and_gradient

import setwise as sw

t = sw.torch


def of_one_class(errors, positive, loss="jaccard"):
    """The Lovász extension of the loss at the errors: a maximum over all orders."""
    table = LOSSES[loss].table(positive)
    return float((errors @ reference.base_vertices(table).T).max())


def by_definition(p, target, ignore=None, classes="present", weight=None, loss="jaccard"):
    """Probabilities (C, P), targets (P,): the weighted mean over the classes that count."""
    kept = np.ones(len(target), bool) if ignore is None else target != ignore
    p, target = p[:, kept], target[kept]
    if not len(target):
        return 0.0
    named = range(len(p)) if isinstance(classes, str) else classes
    weight = np.ones(len(p)) if weight is None else weight
    values, weights = [], []
    for c in named:
        if classes == "present" and not (target == c).any():
            continue
        positive = target == c
        values.append(weight[c] * of_one_class(np.abs(positive - p[c]), positive, loss))
        weights.append(weight[c])
    return sum(values) / sum(weights) if values else 0.0


def softmax(x):
    return np.exp(x) / np.exp(x).sum(axis=0)


CASES = {
    "present": {},
    "all": {"classes": "all"},
    "listed": {"classes": [2, 0]},
    "weighted": {"weight": [0.5, 2.0, 1.0, 3.0], "classes": "all"},
    "void": {"ignore_index": 255},
    "exponential": {"loss": "exponential"},
    "count": {"loss": "hamming"},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_definition(case, dtype, place, monkeypatch):
    device = go_to(place, monkeypatch)
    rng = np.random.default_rng(2)
    options = CASES[case]
    ignore = options.get("ignore_index")
    rest = {k: options[k] for k in ("classes", "weight", "loss") if k in options}
    for _ in range(4):
        logits, target = rng.standard_normal((2, 4, 3)), rng.integers(0, 4, (2, 3))
        if ignore is not None:
            target[0, 1:] = ignore
        value, _ = value_and_gradient(t.LovaszSoftmaxLoss(**options), logits, target, device, dtype)
        flat = np.concatenate(list(logits), axis=1)
        expected = by_definition(softmax(flat), target.ravel(), ignore, **rest)
        np.testing.assert_allclose(value, expected, rtol=1e-5)
        value, _ = value_and_gradient(
            t.LovaszSoftmaxLoss(per_image=True, **options), logits, target, device, dtype
        )
        images = [
            by_definition(softmax(x), y, ignore, **rest)
            for x, y in zip(logits, target, strict=True)
        ]
        np.testing.assert_allclose(value, np.mean(images), rtol=1e-5)
        from_p, _ = value_and_gradient(
            t.LovaszSoftmaxLoss(from_logits=False, **options),
            np.stack([softmax(x) for x in logits]),
            target,
            device,
            dtype,
        )
        np.testing.assert_allclose(from_p, expected, rtol=1e-5)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("per_image", [False, True])
def test_none_and_sum_are_what_the_mean_is_made_of(per_image, place, monkeypatch):
    device = go_to(place, monkeypatch)
    rng = np.random.default_rng(3)
    logits, target = rng.standard_normal((2, 3, 5, 4)), rng.integers(0, 2, (2, 5, 4))
    options = {"per_image": per_image, "weight": [1.0, 2.0, 4.0]}
    values, slopes = value_and_gradient(
        t.LovaszSoftmaxLoss(reduction="none", **options), logits, target, device
    )
    assert values.shape == ((2, 3) if per_image else (3,))
    assert (values[..., 2] == 0).all()  # the class that does not occur
    total, sum_slopes = value_and_gradient(
        t.LovaszSoftmaxLoss(reduction="sum", **options), logits, target, device
    )
    mean, mean_slopes = value_and_gradient(t.LovaszSoftmaxLoss(**options), logits, target, device)
    share = 3.0 * (2 if per_image else 1)
    np.testing.assert_allclose(values.sum(), total)
    np.testing.assert_allclose(total / share, mean)
    np.testing.assert_allclose(slopes, sum_slopes)
    np.testing.assert_allclose(sum_slopes / share, mean_slopes, atol=1e-12)


@pytest.mark.parametrize("place", PLACES)
def test_gradient_by_differences(place, monkeypatch):
    device = go_to(place, monkeypatch)
    x = torch.randn(2, 3, 4, dtype=torch.float64, device=device, requires_grad=True)
    y = torch.randint(0, 3, (2, 4), device=device)
    for criterion in (
        t.LovaszSoftmaxLoss(),
        t.LovaszSoftmaxLoss(classes=[2, 1], per_image=True),
        t.LovaszSoftmaxLoss(reduction="none", weight=[1.0, 0.5, 2.0]),
    ):
        assert torch.autograd.gradcheck(lambda z, c=criterion: c(z, y), x)


def test_certain_probabilities_give_the_loss_itself():
    """One-hot probabilities: the mean Jaccard loss of the classes, by counting."""
    rng = np.random.default_rng(4)
    truth, guess = rng.integers(0, 3, 50), rng.integers(0, 3, 50)
    p = torch.tensor(np.eye(3)[guess].T[None])
    value = t.lovasz_softmax(p, torch.tensor(truth[None]), from_logits=False)
    expected = np.mean([sw.losses.Jaccard()(truth == c, guess == c) for c in range(3)])
    np.testing.assert_allclose(value.item(), expected)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("per_image", [False, True])
def test_nothing_but_void_is_no_loss(per_image, place, monkeypatch):
    device = go_to(place, monkeypatch)
    logits, target = torch.randn(2, 3, 4, 4), torch.full((2, 4, 4), 255)
    for classes in ("present", "all", [1]):
        for reduction in ("mean", "sum", "none"):
            criterion = t.LovaszSoftmaxLoss(
                classes=classes, per_image=per_image, ignore_index=255, reduction=reduction
            )
            value, gradient = value_and_gradient(criterion, logits, target, device)
            assert (value == 0).all()
            assert (gradient == 0).all()


@pytest.mark.parametrize("place", PLACES)
def test_half_precision_is_finite_and_close(place, monkeypatch):
    device = go_to(place, monkeypatch)
    logits, target = 8 * torch.randn(2, 5, 16, 16), torch.randint(0, 5, (2, 16, 16))
    for dtype in (torch.float16, torch.bfloat16):
        exact, _ = value_and_gradient(t.LovaszSoftmaxLoss(), logits.to(dtype).double(), target)
        value, gradient = value_and_gradient(t.LovaszSoftmaxLoss(), logits, target, device, dtype)
        np.testing.assert_allclose(value, exact, rtol=1e-5)
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4), (2, 3, 4, 2), (2, 3, 2, 2, 2)], ids=str)
def test_one_to_five_dimensions(shape):
    rng = np.random.default_rng(6)
    logits = rng.standard_normal(shape)
    target = rng.integers(0, 3, shape[:1] + shape[2:] if len(shape) > 1 else ())
    value, gradient = value_and_gradient(t.LovaszSoftmaxLoss(), logits, target)
    rows = logits.reshape(1, 3, 1) if len(shape) == 1 else logits.reshape(shape[0], 3, -1)
    flat = np.concatenate(list(rows), axis=1)
    again, slopes = value_and_gradient(t.LovaszSoftmaxLoss(), flat.T, target.ravel())
    np.testing.assert_allclose(value, again)
    assert gradient.shape == shape
    np.testing.assert_allclose(np.abs(gradient).sum(), np.abs(slopes).sum())


def test_memory_formats_agree():
    logits, target = torch.randn(2, 3, 8, 8), torch.randint(0, 3, (2, 8, 8))
    first = value_and_gradient(t.LovaszSoftmaxLoss(), logits, target)
    other = value_and_gradient(
        t.LovaszSoftmaxLoss(),
        logits.to(memory_format=torch.channels_last),
        target.transpose(1, 2).contiguous().transpose(1, 2),
    )
    for one, two in zip(first, other, strict=True):
        np.testing.assert_array_equal(one, two)


def test_any_other_loss_runs_on_the_host_and_says_so():
    rng = np.random.default_rng(7)
    p, target = softmax(rng.standard_normal((3, 5))), rng.integers(0, 3, 5)
    with pytest.warns(UserWarning, match="on the host"):
        value = t.lovasz_softmax(
            torch.tensor(p[None]), torch.tensor(target[None]), "early_detection", from_logits=False
        )
    values = [
        sw.functions.lovasz_extension(
            sw.losses.EarlyDetection().set_function(target == c), np.abs((target == c) - p[c])
        )
        for c in np.unique(target)
    ]
    np.testing.assert_allclose(value.item(), np.mean(values))


def test_bad_input_in_one_sentence():
    logits, target = torch.zeros(2, 3, 4), torch.zeros(2, 4, dtype=torch.long)
    with pytest.raises(ValueError, match="submodular or one of counts"):
        t.LovaszSoftmaxLoss(sw.losses.SetLoss(lambda y, z: 1.0, submodular=False))
    with pytest.raises(ValueError, match="target must have shape"):
        t.lovasz_softmax(logits, target[:1])
    with pytest.raises(TypeError, match="integers or booleans"):
        t.lovasz_softmax(logits, target.float())
    with pytest.raises(ValueError, match=r"classes in 0\.\.2 .* got 3"):
        t.lovasz_softmax(logits, target + 3)
    with pytest.raises(ValueError, match="classes must lie in"):
        t.lovasz_softmax(logits, target, classes=[3])
    with pytest.raises(ValueError, match="classes must be 'present'"):
        t.LovaszSoftmaxLoss(classes="some")
    with pytest.raises(ValueError, match="distinct"):
        t.LovaszSoftmaxLoss(classes=[1, 1])
    with pytest.raises(ValueError, match="weight must have shape"):
        t.lovasz_softmax(logits, target, weight=[1.0, 2.0])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("buckets", [None, 64])
def test_a_list_of_classes_in_any_order(buckets, reduction, place, monkeypatch):
    """The gradient by differences, and the same whatever the order of the classes."""
    device = go_to(place, monkeypatch)
    rng = np.random.default_rng(8)
    for trial in range(6):
        n_classes = int(rng.integers(2, 5))
        size = n_classes if trial < 3 else int(rng.integers(1, n_classes + 1))
        classes = rng.permutation(n_classes)[:size]
        logits = rng.standard_normal((2, n_classes, 3))
        target = rng.integers(0, n_classes, (2, 3))
        options = {
            "reduction": reduction,
            "buckets": buckets,
            "per_image": bool(trial % 2),
            "from_logits": trial % 3 > 0,
            "weight": torch.tensor(rng.random(n_classes), device=device),
        }
        if not options["from_logits"]:
            logits = np.stack([softmax(x) for x in logits])
        criterion = t.LovaszSoftmaxLoss(classes=classes, **options)
        ordered = t.LovaszSoftmaxLoss(classes=sorted(classes.tolist()), **options)
        for dtype in (torch.float32, torch.float64):
            value, gradient = value_and_gradient(criterion, logits, target, device, dtype)
            again, slopes = value_and_gradient(ordered, logits, target, device, dtype)
            if reduction == "none":
                value = value[..., np.argsort(classes)]
            np.testing.assert_allclose(value, again, rtol=1e-5)
            np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-7)
        if buckets is None:
            x = torch.tensor(logits, device=device, requires_grad=True)
            y = torch.tensor(target, device=device)
            assert torch.autograd.gradcheck(lambda z, c=criterion, y=y: c(z, y), x, fast_mode=True)


@given(
    st.integers(0, 2**31),
    st.permutations(range(4)),
    st.integers(1, 4),
    st.sampled_from(["mean", "sum", "none"]),
    st.sampled_from([None, 64]),
)
def test_random_lists_of_classes(seed, order, size, reduction, buckets):
    """The gradient of any list is that of the sorted one, with void pixels and weights."""
    rng = np.random.default_rng(seed)
    logits = torch.tensor(rng.standard_normal((2, 4, 6)))
    target = torch.tensor(rng.choice([0, 1, 2, 3, 255], (2, 6)))
    classes = order[:size]
    options = {
        "reduction": reduction,
        "buckets": buckets,
        "per_image": bool(seed % 2),
        "ignore_index": 255,
        "weight": rng.random(4),
    }
    dtype = torch.float32 if seed % 3 else torch.float64
    criterion = t.LovaszSoftmaxLoss(classes=classes, **options)
    _, gradient = value_and_gradient(criterion, logits, target, dtype=dtype)
    ordered = t.LovaszSoftmaxLoss(classes=sorted(classes), **options)
    _, slopes = value_and_gradient(ordered, logits, target, dtype=dtype)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-7)


def test_classes_of_every_kind_of_integer():
    logits, target = torch.randn(2, 3, 4), torch.randint(0, 3, (2, 4))
    expected = t.lovasz_softmax(logits, target, classes=[1, 0])
    for classes in (
        (1, 0),
        [np.int64(1), 0],
        np.array([1, 0], np.uint8),
        torch.tensor([1, 0]),
        range(1, -1, -1),
        {1: None, 0: None}.keys(),
    ):
        assert t.lovasz_softmax(logits, target, classes=classes) == expected
        assert t.LovaszSoftmaxLoss(classes=classes)(logits, target) == expected
    for classes, kind, words in [
        ([True, False], TypeError, "classes must be integers, got True"),
        ([np.True_], TypeError, "classes must be integers, got"),
        (torch.tensor([True]), TypeError, "classes must be integers, got True"),
        ([0.0], TypeError, r"classes must be integers, got 0\.0"),
        ([[0, 1]], TypeError, "classes must be integers"),
        (1, TypeError, "classes must be 'present', 'all' or a list of classes, got int"),
        (None, TypeError, "classes must be 'present', 'all' or a list of classes, got NoneType"),
        ({1: 2}, TypeError, "list of classes, got dict"),
        ([], ValueError, "classes must be distinct and not negative"),
        ([1, np.int32(1)], ValueError, "classes must be distinct"),
        ([-1, 1], ValueError, "not negative"),
        ([0, 3], ValueError, r"classes must lie in 0\.\.2"),
        ([2**70], ValueError, r"classes must lie in 0\.\.2"),
    ]:
        with pytest.raises(kind, match=words):
            t.lovasz_softmax(logits, target, classes=classes)
