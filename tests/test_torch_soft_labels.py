"""Losses of probabilities: soft labels, one-hot, the overlaps, their means, and what they equal."""

from itertools import combinations

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from torch_cases import DEVICES, torch, value_and_gradient

import setwise as sw
from setwise.torch._operators._library import HAS_OPERATORS
from setwise.torch._reference._soft_jaccard import _gains_in_buckets, soft_jaccard

t = sw.torch
OVERLAPS = {
    "dice": t.SoftDiceLoss,
    "tversky": t.TverskyLoss,
    "jaccard metric": t.JaccardMetricLoss,
    "dice semimetric": t.DiceSemimetricLoss,
}


def soft_function(y):
    """f(A) = |A| / (m + sum over A of 1 - y), of a mask."""

    def value(mask):
        if not mask.any():
            return 0.0
        return 1.0 if y.sum() == 0 else mask.sum() / (y.sum() + (1 - y)[mask].sum())

    return value


def table_of(y):
    masks = reference.all_masks(len(y))
    return np.array([soft_function(y)(mask) for mask in masks])


truths = st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.7, 1.0]), min_size=1, max_size=5)


@given(truths)
def test_function_of_soft_labels_is_submodular_and_increases(y):
    """f(A + i) - f(A) falls as A grows and is nowhere negative."""
    value, n = soft_function(np.array(y)), len(y)
    for mask in reference.all_masks(n):
        for i in np.flatnonzero(~mask):
            more = mask.copy()
            more[i] = True
            assert value(more) >= value(mask) - 1e-12
            for j in np.flatnonzero(~more):
                other, both = mask.copy(), more.copy()
                other[j] = both[j] = True
                assert value(both) - value(other) <= value(more) - value(mask) + 1e-12


@given(truths, st.integers(0, 2**31))
def test_value_is_the_maximum_over_all_orders(y, seed):
    y = np.array(y)
    x = np.random.default_rng(seed).uniform(size=len(y))
    expected = (np.abs(x - y) @ reference.base_vertices(table_of(y)).T).max()
    found = soft_jaccard(torch.tensor(x)[None], torch.tensor(y)[None], None)
    assert found.item() == pytest.approx(expected, abs=1e-12)
    counted = soft_jaccard(torch.tensor(x)[None], torch.tensor(y)[None], None, 512)
    assert abs(counted.item() - expected) <= 1 / 1024 + 1e-12


@given(truths, st.integers(0, 2**31))
def test_gains_in_buckets_lie_in_the_base_polytope(y, seed):
    """For each bucket, every part of it gains at most what it adds, and the whole exactly that."""
    y = np.array(y)
    errors = np.random.default_rng(seed).uniform(size=len(y))
    gains = _gains_in_buckets(torch.tensor(errors)[None], torch.tensor(y)[None], 2)[0].numpy()
    value, before = soft_function(y), np.zeros(len(y), bool)
    for bucket in (np.flatnonzero(errors >= 0.5), np.flatnonzero(errors < 0.5)):
        for size in range(len(bucket) + 1):
            for part in combinations(bucket, size):
                more = before.copy()
                more[list(part)] = True
                assert gains[list(part)].sum() <= value(more) - value(before) + 1e-12
        more = before.copy()
        more[bucket] = True
        assert gains[bucket].sum() == pytest.approx(value(more) - value(before), abs=1e-12)
        before = more


def draw(device="cpu", shape=(3, 4, 5, 3), seed=0):
    rng = np.random.default_rng(seed)
    x = torch.tensor(2 * rng.standard_normal(shape), device=device)
    y = torch.tensor(rng.integers(0, shape[1], (shape[0], *shape[2:])), device=device)
    y[0, 0, 0] = 255
    hot = torch.nn.functional.one_hot(torch.where(y == 255, 0, y), shape[1]).movedim(-1, 1)
    return x, y, torch.where((y == 255)[:, None], 255, hot)


MEANS = [
    {},
    {"classes": "all"},
    {"classes": [3, 1]},
    {"weight": [1.0, 2.0, 0.5, 4.0]},
    {"per_image": True},
    {"per_image": True, "average": "classes"},
    {"per_image": True, "worst": 0.4},
    {"per_image": True, "average": "classes", "worst": 0.5, "weight": [1.0, 2.0, 0.5, 4.0]},
    {"per_image": True, "reduction": "none"},
    {"reduction": "sum"},
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("options", MEANS, ids=str)
@pytest.mark.parametrize("buckets", [None, 8192])
def test_hard_labels_in_every_form_are_one_loss(options, buckets, device):
    """Classes, one-hot integers and one-hot floats: one value, and one gradient."""
    x, y, hot = draw(device)
    criterion = t.LovaszSoftmaxLoss(ignore_index=255, buckets=buckets, **options)
    value, gradient = value_and_gradient(criterion, x, y, device)
    for other in (hot, hot.double()):
        found, slopes = value_and_gradient(criterion, x, other, device)
        np.testing.assert_allclose(found, value, atol=1e-3 if buckets is not None else 1e-12)
        if buckets is None:
            np.testing.assert_allclose(slopes, gradient, atol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", OVERLAPS)
def test_overlaps_by_definition(name, device):
    """Each class by its formula, void pixels left out."""
    x, y, hot = draw(device)
    criterion = OVERLAPS[name](ignore_index=255, classes="all", reduction="none")
    value, _ = value_and_gradient(criterion, x, y, device)
    p = torch.softmax(x, 1).movedim(1, -1)[y != 255].T.cpu().numpy()
    truth = hot.movedim(1, -1)[y != 255].T.cpu().numpy().astype(float)
    both, apart = (p * truth).sum(1), np.abs(p - truth).sum(1)
    total = p.sum(1) + truth.sum(1)
    expected = {
        "dice": 1 - 2 * both / total,
        "tversky": 1 - 2 * both / total,
        "jaccard metric": 1 - np.minimum(p, truth).sum(1) / np.maximum(p, truth).sum(1),
        "dice semimetric": apart / total,
    }
    np.testing.assert_allclose(value, expected[name], atol=1e-12)


@pytest.mark.parametrize(
    "make", [*OVERLAPS.values(), t.LovaszSoftmaxLoss], ids=lambda c: c.__name__
)
def test_losses_at_the_corners_are_set_losses(make):
    """Where every probability is 0 or 1, the loss of the predicted masks."""
    _, y, _ = draw()
    z = torch.tensor(np.random.default_rng(1).integers(0, 4, y.shape))
    logits = 1e3 * torch.nn.functional.one_hot(z, 4).movedim(-1, 1).double()
    is_dice = make in (t.SoftDiceLoss, t.TverskyLoss, t.DiceSemimetricLoss)
    for options in MEANS[:-2]:
        score = t.SetScore(
            "dice" if is_dice else "jaccard", n_classes=4, ignore_index=255, **options
        )
        found = make(ignore_index=255, **options)(logits, y).item()
        assert found == pytest.approx(1 - score(logits, y).item(), abs=1e-9), options


@pytest.mark.parametrize("make", [t.JaccardMetricLoss, t.DiceSemimetricLoss, t.LovaszSoftmaxLoss])
def test_soft_labels_are_met_by_themselves_alone(make):
    """0 at x = y, above 0 elsewhere; soft Dice is not."""
    rng = np.random.default_rng(3)
    y = torch.tensor(rng.dirichlet(np.ones(3), (2, 7)).transpose(0, 2, 1))
    criterion = make(
        **({"from_logits": False} if make is t.LovaszSoftmaxLoss else {"activation": "none"})
    )
    assert criterion(y, y.clone()).item() == pytest.approx(0.0, abs=1e-12)
    assert criterion((y + 1 / 3) / 2, y).item() > 1e-3
    assert t.SoftDiceLoss(activation="none")(y, y.clone()).item() > 0.1


@pytest.mark.parametrize("loss", ["jaccard", "dice", sw.losses.FBeta(2.0)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("device", DEVICES)
def test_sigmoid_is_the_second_of_two_classes(loss, dtype, device):
    """Logits (0, x) have the sigmoid of x for their second probability."""
    x, y, _ = draw(device, (2, 1, 9, 4))
    y = torch.where(
        y == 255, 255, (torch.arange(y.numel(), device=device).view_as(y) % 3 == 0).long()
    )
    both = torch.cat([torch.zeros_like(x), x], 1)
    expected = t.lovasz_softmax(both, y, loss, classes=[1], ignore_index=255)
    targets = [y, y.to(dtype)]
    for target in targets:
        found = t.lovasz_sigmoid(x.to(dtype), target, loss, ignore_index=255)
        assert found.item() == pytest.approx(expected.item(), abs=1e-6)


@pytest.mark.parametrize(
    "criterion",
    [
        t.LovaszHingeLoss(per_class=True),
        t.DecomposedHingeLoss("dice", per_class=True),
        t.SlackRescalingLoss("dice", per_class=True, per_image=True),
    ],
    ids=lambda c: type(c).__name__,
)
def test_class_labels_for_losses_of_scores(criterion):
    """Every class a set: its margin over the best other class, positive where it is predicted."""
    x, y, _ = draw()
    y[0, 0, 0] = 1
    margins = torch.stack(
        [x[:, c] - torch.cat([x[:, :c], x[:, c + 1 :]], 1).amax(1) for c in range(4)], 1
    )
    assert ((margins > 0) == (x.argmax(1)[:, None] == torch.arange(4)[:, None, None])).all()
    masks = y[:, None] == torch.arange(4)[:, None, None]
    assert criterion(x, y).item() == pytest.approx(criterion(margins, masks).item(), rel=1e-12)


def test_class_labels_leave_void_pixels_out():
    x, y, _ = draw()
    criterion = t.LovaszHingeLoss(per_class=True, ignore_index=255)
    moved = x.clone()
    moved[0, :, 0, 0] += torch.tensor([5.0, -3.0, 2.0, 1.0])
    assert criterion(x, y).item() == criterion(moved, y).item()


@pytest.mark.parametrize(
    "criterion",
    [
        t.LovaszSoftmaxLoss(),
        t.LovaszSoftmaxLoss("dice", per_image=True, average="classes"),
        t.SoftDiceLoss(smooth=1.0),
        t.JaccardMetricLoss(),
        t.DiceSemimetricLoss(),
        t.TverskyLoss(gamma=0.75),
        t.LovaszHingeLoss(per_class=True),
        t.WithCrossEntropy(t.LovaszSoftmaxLoss("dice")),
    ],
    ids=str,
)
def test_gradients(criterion):
    """Finite differences, away from ties."""
    x, y, _ = draw(shape=(2, 3, 4, 1), seed=5)
    y[0, 0, 0] = 2
    assert torch.autograd.gradcheck(
        lambda z: criterion(z, y), x.requires_grad_(), eps=1e-7, atol=1e-5
    )


def test_gradients_of_soft_labels():
    x, _, _ = draw(shape=(2, 3, 4, 1), seed=5)
    y = torch.softmax(draw(shape=(2, 3, 4, 1), seed=6)[0], 1)
    for criterion in (t.LovaszSoftmaxLoss(), t.JaccardMetricLoss(), t.LovaszSigmoidLoss()):
        assert torch.autograd.gradcheck(
            lambda z, criterion=criterion: criterion(z, y), x.requires_grad_(), eps=1e-7, atol=1e-5
        )


def test_cross_entropy_is_torchs():
    x, y, hot = draw()
    cross = torch.nn.functional.cross_entropy(x, y, ignore_index=255, label_smoothing=0.1)
    only = t.WithCrossEntropy(t.LovaszSoftmaxLoss(ignore_index=255), 0.0, label_smoothing=0.1)
    assert only(x, y).item() == pytest.approx(cross.item(), rel=1e-6)
    assert only(x, hot).item() == pytest.approx(cross.item(), rel=1e-6)
    masks = t.WithCrossEntropy(t.LovaszHingeLoss(ignore_index=255), 0.25)
    kept = hot != 255
    binary = torch.nn.functional.binary_cross_entropy_with_logits(x[kept], hot[kept].double())
    expected = 0.25 * t.lovasz_hinge(x, hot, ignore_index=255) + 0.75 * binary
    assert masks(x, hot).item() == pytest.approx(expected.item(), rel=1e-6)


def test_cross_entropy_has_the_class_weights_of_its_criterion():
    x, y, hot = draw()
    classes = x.shape[1]
    w = torch.linspace(0.5, 3.0, classes, dtype=x.dtype)
    options = {"weight": w, "ignore_index": 255}
    for criterion in (
        t.JaccardMetricLoss(**options),
        t.LovaszSoftmaxLoss("dice", **options),
        t.LovaszHingeLoss(per_class=True, **options),
    ):
        for eps in (0.0, 0.1):
            known = torch.nn.functional.cross_entropy(
                x, y, w, ignore_index=255, label_smoothing=eps
            )
            both = t.WithCrossEntropy(criterion, 0.25, label_smoothing=eps)
            expected = 0.25 * criterion(x, y) + 0.75 * known
            assert both(x, y).item() == pytest.approx(expected.item(), rel=1e-6)
    only = t.WithCrossEntropy(t.JaccardMetricLoss(weight=w), 0.0)
    assert only.share == 0.0
    soft = torch.softmax(draw(seed=6)[0], 1)
    each = w.view(-1, *(1,) * (x.ndim - 2)) * soft
    expected = -(each * torch.log_softmax(x, 1)).sum() / each.sum()
    assert only(x, soft).item() == pytest.approx(expected.item(), rel=1e-6)
    # Of masks every logit has the weight of its class.
    masks = t.WithCrossEntropy(t.LovaszHingeLoss(per_class=True, **options), 0.0)
    kept = hot != 255
    each = w.view(-1, *(1,) * (x.ndim - 2)).expand(x.shape)[kept]
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        x[kept], hot[kept].double(), each, reduction="sum"
    )
    assert masks(x, hot).item() == pytest.approx(expected.item() / each.sum().item(), rel=1e-6)
    # No weight at all: 0, and a common factor changes nothing.
    nothing = t.WithCrossEntropy(t.JaccardMetricLoss(weight=0 * w), 0.0)
    assert nothing(x, soft).item() == 0
    more = t.WithCrossEntropy(t.JaccardMetricLoss(weight=5 * w), 0.0)
    assert more(x, soft).item() == pytest.approx(only(x, soft).item(), rel=1e-12)
    with pytest.raises(
        TypeError, match="unexpected keyword argument 'weight': did you mean 'share'"
    ):
        t.WithCrossEntropy(t.JaccardMetricLoss(), weight=0.5)


@pytest.mark.parametrize(
    "criterion",
    [
        t.JaccardMetricLoss(weight=[1.0, 2.5]),
        t.LovaszSoftmaxLoss(weight=[1.0, 2.5], across_ranks=True),
        t.LovaszHingeLoss(per_class=True, weight=[1.0, 2.5]),
        t.SetScore(n_classes=2, weight=[1.0, 2.5]),
        t.WithCrossEntropy(t.SoftDiceLoss(weight=[1.0, 2.5])),
    ],
    ids=lambda criterion: type(criterion).__name__,
)
def test_a_repr_shows_the_weights(criterion):
    assert "weight=[1, 2.5]" in repr(criterion)


def test_a_repr_of_many_weights_is_short():
    shown = repr(t.SoftDiceLoss(weight=torch.ones(150), across_ranks=True))
    assert "weight=[1, 1, 1, 1, 1, 1, 1, 1, ... 150 in all]" in shown
    assert "across_ranks=True" in shown


@pytest.mark.parametrize(
    ("kind", "words"),
    {
        t.SoftDiceLoss: "did you mean 'activation'",
        t.JaccardMetricLoss: "did you mean 'activation'",
        t.LovaszHingeLoss: "did you mean 'per_class'",
        t.LovaszSigmoidLoss: "did you mean 'per_class'",
        t.SlackRescalingLoss: "did you mean 'per_class'",
        t.MarginRescalingLoss: "did you mean 'per_class'",
        t.SetScore: "did you mean 'kind'",
        t.LovaszSoftmaxLoss: "its targets are classes, LovaszSigmoidLoss is the loss of masks",
    }.items(),
)
def test_the_mode_of_other_libraries_is_answered(kind, words):
    told = rf"{kind.__name__}\.__init__\(\) got an unexpected keyword argument 'mode': {words}"
    with pytest.raises(TypeError, match=told):
        kind(mode="multiclass")


@pytest.mark.parametrize(
    ("name", "meant"),
    {
        "DiceLoss": "SoftDiceLoss",
        "JaccardLoss": "JaccardMetricLoss",
        "IoULoss": "JaccardMetricLoss",
        "LovaszLoss": "LovaszSoftmaxLoss",
        "LovaszHingLoss": "LovaszHingeLoss",
    }.items(),
)
def test_the_names_of_other_libraries_are_answered(name, meant):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'.*{meant}"):
        getattr(t, name)


def of(**options):
    """Lovász-softmax with some options."""
    return lambda x, y: t.lovasz_softmax(x, y, **options)


def scores_of_two(x, y):
    return t.SetScore(n_classes=2)(x, y)


WRONG = {
    "loss must be 'jaccard'": lambda x, y: t.lovasz_softmax(x, x.sigmoid(), "dice"),
    "soft labels in": lambda x, y: t.lovasz_softmax(x, 2 * x.sigmoid()),
    "one-hot": lambda x, y: t.lovasz_softmax(x, torch.ones_like(x).long()),
    "per_image must be True": of(average="classes"),
    "worst must lie": of(per_image=True, worst=0),
    "average must be": of(average="pixels"),
    "per_class must be True": t.lovasz_hinge,
    "activation must be": lambda x, y: t.SoftDiceLoss(activation="tanh"),
    "smooth must be": lambda x, y: t.SoftDiceLoss(smooth=-1.0),
    "share must lie": lambda x, y: t.WithCrossEntropy(t.SoftDiceLoss(), 2.0),
    "criterion must take logits": lambda x, y: t.WithCrossEntropy(
        t.SoftDiceLoss(activation="none")
    ),
    "loss must be a ratio of counts": lambda x, y: t.SetScore("hamming", n_classes=2),
    "n_classes must be at least 1": lambda x, y: t.SetScore(n_classes=0),
    "update must be called": lambda x, y: t.SetScore(n_classes=2).compute(),
    "input must have shape": scores_of_two,
    "errors must be 'sigmoid'": lambda x, y: t.InstanceLoss("dice", errors="hinge"),
    "not negative": lambda x, y: t.InstanceLoss()(x[:, 0], y - 9),
}
WRONG_TYPES = {
    "integers or booleans": lambda x, y: t.lovasz_softmax(x, y.double()),
    "worst must be": of(per_image=True, worst="5"),
    "alpha must be a number": lambda x, y: t.TverskyLoss(alpha="a"),
    "criterion must be": lambda x, y: t.WithCrossEntropy(torch.nn.MSELoss()),
    "must hold integers": lambda x, y: t.InstanceLoss()(x[:, 0], y.double()),
}


@pytest.mark.parametrize("match", [*WRONG, *WRONG_TYPES])
def test_errors_are_sentences(match):
    x, y, _ = draw()
    y[0, 0, 0] = 0
    call = WRONG.get(match) or WRONG_TYPES[match]
    with pytest.raises(ValueError if match in WRONG else TypeError, match=match):
        call(x, y)


TRACED = {
    **{name: (make(), "classes") for name, make in OVERLAPS.items()},
    "void, worst": (
        t.SoftDiceLoss(ignore_index=255, per_image=True, average="classes", worst=0.5),
        "classes",
    ),
    "one-hot": (t.SoftDiceLoss(), "one-hot"),
    "soft": (t.JaccardMetricLoss(), "soft"),
    "softmax of soft labels": (t.LovaszSoftmaxLoss(), "soft"),
    "hinge of classes": (t.LovaszHingeLoss(per_class=True), "classes"),
    "sigmoid": (t.LovaszSigmoidLoss("dice"), "one-hot"),
    "cross-entropy of classes": (t.WithCrossEntropy(t.SoftDiceLoss()), "classes"),
    "cross-entropy of masks": (t.WithCrossEntropy(t.LovaszHingeLoss()), "one-hot"),
}


def a_batch(kind):
    torch.manual_seed(0)
    x, y = torch.randn(2, 3, 5), torch.randint(0, 3, (2, 5))
    one_hot = torch.nn.functional.one_hot(y, 3).movedim(-1, 1)
    return x, {"classes": y, "one-hot": one_hot, "soft": torch.randn(2, 3, 5).softmax(1)}[kind]


@pytest.mark.parametrize("name", TRACED)
def test_losses_compile_as_one_graph_and_are_mapped(name):
    criterion, kind = TRACED[name]
    x, y = a_batch(kind)
    expected = criterion(x, y)
    torch._dynamo.reset()
    compiled = torch.compile(criterion, backend="aot_eager", fullgraph=HAS_OPERATORS)
    torch.testing.assert_close(compiled(x, y), expected)
    mapped = torch.func.vmap(criterion)(torch.stack([x, x.flip(0)]), torch.stack([y, y.flip(0)]))
    torch.testing.assert_close(mapped[0], expected)


def test_a_compiled_loss_refuses_what_is_no_class():
    x, y = a_batch("classes")
    torch._dynamo.reset()
    compiled = torch.compile(t.SoftDiceLoss(), backend="aot_eager", fullgraph=HAS_OPERATORS)
    with pytest.raises((RuntimeError, ValueError), match=r"classes in 0\.\.2"):
        compiled(x, y + 7)


@pytest.mark.parametrize("name", OVERLAPS)
@pytest.mark.parametrize(
    "options", [{"per_image": True}, {"per_image": True, "average": "classes", "worst": 0.5}]
)
def test_no_images_have_no_loss(name, options):
    x, y = a_batch("classes")
    logits = x[:0].requires_grad_()
    value = OVERLAPS[name](**options)(logits, y[:0])
    value.backward()
    assert value.item() == 0


def test_a_class_that_is_masked_out_adds_no_cross_entropy():
    x, y = a_batch("classes")
    masked = x.clone()
    masked[:, 2] = -torch.inf
    logits = masked.requires_grad_()
    value = t.WithCrossEntropy(t.SoftDiceLoss(), share=0.0)(logits, y.clamp(max=1))
    value.backward()
    torch.testing.assert_close(value, torch.nn.functional.cross_entropy(masked, y.clamp(max=1)))
    assert logits.grad.isfinite().all()
