"""Other representations and hostile values, for every public loss: right answers or a sentence."""

import numpy as np
import pytest
from torch_cases import (
    CRITERIA,
    DEVICES,
    FUNCTIONS,
    PLACES,
    SOFTMAX,
    SinglePrecisionDevice,
    draw,
    go_to,
    torch,
)

import setwise as sw
from setwise.torch._operators._library import HAS_OPERATORS

t = sw.torch
INF, NAN = float("inf"), float("nan")
HINGES = [function for function in FUNCTIONS if function is not t.lovasz_softmax]


def both(function):
    """A loss as its function and as its module, called alike."""

    def module(input, target, **options):
        return FUNCTIONS[function](**options)(input, target)

    return function, module


def options_of(function):
    """What puts classes into the sets of a loss."""
    return {} if function is t.lovasz_softmax else {"per_class": True}


def answer(call, x, y, **options):
    x = x.detach().requires_grad_()
    value = call(x, y, **options)
    value.sum().backward()
    return value.detach(), x.grad


def test_every_public_name_is_in_the_registry():
    listed = {f.__name__ for f in FUNCTIONS} | {m.__name__ for m in FUNCTIONS.values()}
    listed |= {"decide"}  # no loss: test_torch_decide.py
    listed |= {"MaskCalibrator"}  # no loss: test_torch_mask_calibrator.py
    listed |= {"SoftDiceLoss", "TverskyLoss", "JaccardMetricLoss", "DiceSemimetricLoss"}
    listed |= {"WithCrossEntropy", "InstanceLoss", "SetScore"}  # modules alone
    listed |= {name for name in t.__all__ if name.startswith("Field")}  # test_torch_fields.py
    assert listed == set(t.__all__)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_other_representations_of_the_same_tensors(function, place, monkeypatch):
    device = go_to(place, monkeypatch)
    x, y = draw(function, device)
    x, y = x.detach(), y.to(torch.uint8)
    y.view(-1)[:2] = 255  # void, whatever the type
    options = {"ignore_index": 255}
    for call in both(function):
        expected = answer(call, x, y, **options)
        for dtype in (torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32):
            for ours, theirs in zip(answer(call, x, y.to(dtype), **options), expected, strict=True):
                torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
        wide = torch.where(y == 255, -1, y.long())
        for target, ignore in ((y.to(torch.uint64), 255), (wide, -1), (wide.to(torch.int8), -1)):
            for ours, theirs in zip(
                answer(call, x, target, ignore_index=ignore), expected, strict=True
            ):
                torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
        # Strides of every kind; a negated view; an expanded one.
        padded = torch.stack([x, x + 1], -1)[..., 0]
        turned = x.transpose(0, 2).contiguous().transpose(0, 2)
        lazily = torch.complex(torch.zeros_like(x), -x).conj().imag  # a negative bit
        assert lazily.is_neg()
        for other in (padded, turned, lazily):
            assert not other.is_contiguous() or other.is_neg()
            for ours, theirs in zip(answer(call, other, y, **options), expected, strict=True):
                torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
        steps = torch.stack([y, y], -1)[..., 1]
        for ours, theirs in zip(answer(call, x, steps, **options), expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
        frozen = call(x, y, **options)  # without a graph
        assert not frozen.requires_grad
        torch.testing.assert_close(frozen, expected[0], rtol=0, atol=0)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_void_label_of_any_integer_type_is_void(dtype, place, monkeypatch):
    """A label that the type cannot hold is met nowhere: 255 as int8 is not -1."""
    device = go_to(place, monkeypatch)
    x, y = draw(t.lovasz_softmax, device, dtype)
    x, y = x.detach(), y.clone()
    y[0, :3] = 2
    for reduction in ("mean", "sum", "none"):
        expected = t.lovasz_softmax(x, y, ignore_index=2, reduction=reduction)
        assert not torch.equal(t.lovasz_softmax(x, y, reduction=reduction), expected)
        for kind in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.uint16, torch.uint64):
            ours = t.lovasz_softmax(x, y.to(kind), ignore_index=2, reduction=reduction)
            torch.testing.assert_close(ours, expected, rtol=0, atol=0)
        for kind, ignore in ((torch.uint8, -254), (torch.int8, 258), (torch.int16, 65538)):
            ours = t.lovasz_softmax(x, y.to(kind), ignore_index=ignore, reduction=reduction)
            torch.testing.assert_close(ours, t.lovasz_softmax(x, y, reduction=reduction))
    if device == "cpu":
        with pytest.raises(ValueError, match=r"target must hold classes in 0\.\.2 .* got -1"):
            t.lovasz_softmax(x, torch.full_like(y, -1).to(torch.int8), ignore_index=255)
        with pytest.raises(ValueError, match="target must hold labels"):
            t.lovasz_hinge(x, torch.full(x.shape, 156, dtype=torch.uint8), ignore_index=-100)
        with pytest.raises(ValueError, match="target must hold labels"):
            t.lovasz_hinge(x, torch.full(x.shape, 2**64 - 1, dtype=torch.uint64))


@pytest.mark.parametrize("place", PLACES[:2])
@pytest.mark.parametrize("function", HINGES, ids=lambda f: f.__name__)
def test_a_target_with_minus_one_and_zero_is_refused(function, place, monkeypatch):
    """A void label that nobody named would train for negatives, in silence."""
    go_to(place, monkeypatch)
    x, y = draw(function, "cpu")
    for dtype in (torch.int8, torch.int64, torch.float16, torch.float32, torch.float64):
        target = y.to(dtype)
        target[0, 0, 0] = -1
        target[0, 0, 1] = 0
        for call in both(function):
            for options in ({}, {"ignore_index": 255}, {"per_image": True}):
                with pytest.raises(ValueError, match=r"target must hold .* got -1 and 0"):
                    call(x, target, **options)
            assert call(x, target, ignore_index=-1).isfinite()
            assert call(x, target, ignore_index=0).isfinite()
            assert call(x, 2 * y.to(dtype) - 1).isfinite()
    if function is t.lovasz_hinge:
        with pytest.raises(ValueError, match=r"target must hold .* got -1 and 0"):
            function(x.float(), target, buckets=8192)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_hostile_tensors_in_one_sentence(function, device):
    x, y = draw(function, device)
    x = x.detach()
    for call in both(function):
        for wrong, kind, words in [
            ((x.numpy(force=True), y), TypeError, "input must be a tensor, got ndarray"),
            ((x, y.tolist()), TypeError, "target must be a tensor, got list"),
            ((x, None), TypeError, "target must be a tensor, got NoneType"),
            ((x.to(torch.complex64), y), TypeError, "input must be float16.*complex64"),
            ((x.long(), y), TypeError, "input must be float16.*int64"),
            ((x.bool(), y), TypeError, "input must be float16.*bool"),
            ((x, y.to(torch.complex64)), TypeError, "target must hold .* got torch.complex64"),
            ((x, y.float().to(torch.float8_e5m2)), TypeError, "target must hold .*float8"),
            ((x.to_sparse(), y), TypeError, "input must be a dense tensor, got torch.sparse"),
            ((x, y.to_sparse()), TypeError, "target must be a dense tensor, got torch.sparse"),
            ((x, y.to("meta")), ValueError, "target must be on the device of input"),
            ((x, y.unsqueeze(-1)), ValueError, "target must have"),
            ((x, y[..., 1:]), ValueError, "target must have"),
        ]:
            with pytest.raises(kind, match=words):
                call(*wrong)
        with pytest.raises((TypeError, ValueError), match="target must"):
            call(x, y.to(x.dtype).requires_grad_())
        if device == "cpu":
            with pytest.raises(ValueError, match="target must hold"):
                call(x, torch.full_like(y, 7, dtype=torch.int64))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_weights_are_looked_at(function, device):
    x, y = draw(function, device)
    x = x.detach()
    sets = options_of(function)
    for call in both(function):
        for weight in ([1.0, NAN, 1.0], [1.0, INF, 1.0], [1.0, -1.0, 1.0], [1e308, 1e308, 1e308]):
            for given in (weight, np.array(weight), torch.tensor(weight, dtype=torch.float64)):
                with pytest.raises(ValueError, match="weight must be finite"):
                    call(x, y, weight=given, **sets)
        for weight, kind, words in [
            ([1.0, 2.0], ValueError, "weight must have"),
            ([[1.0, 2.0, 3.0]], ValueError, r"weight must have shape \(C,\)"),
            (2.0, ValueError, r"weight must have shape \(C,\)"),
            ([1.0, 2.0, 3j], TypeError, "weight must be real"),
            ("abc", TypeError, "weight must be a tensor or numbers, got str"),
            ([1.0, None, 2.0], TypeError, "weight must be a tensor or numbers, got list"),
            (np.array([1, 2, "a"], object), TypeError, "weight must be a tensor or numbers"),
            (torch.ones(3).to_sparse(), TypeError, "weight must be a dense tensor"),
            (torch.ones(3, device="meta"), ValueError, "weight must be on the device of input"),
            (np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0]), ValueError, "weight must be given"),
        ]:
            with pytest.raises(kind, match=words):
                call(x, y, weight=weight, **sets)
        # Other representations; a weight of 0 removes a class; a factor changes no mean.
        weight = [1.0, 2.0, 4.0]
        expected = call(x, y, weight=weight, **sets)
        for given in (
            (1, 2, 4),
            np.array([1, 2, 4], np.uint8),
            np.array([4.0, 2.0, 1.0])[::-1],
            np.array(weight, ">f4"),
            np.broadcast_to(np.array(weight), (3,)),  # read-only
            torch.tensor(weight),
            torch.tensor(weight, device=device, dtype=torch.float16),
            1e300 * torch.tensor(weight, dtype=torch.float64),
            1e-300 * torch.tensor(weight, dtype=torch.float64),
        ):
            torch.testing.assert_close(call(x, y, weight=given, **sets), expected)
        nothing = answer(call, x, y, weight=[0.0, 0.0, 0.0], **sets)
        assert nothing[0] == 0
        assert (nothing[1] == 0).all()
    if function is not t.lovasz_softmax:
        with pytest.raises(ValueError, match="weight must be None unless per_class"):
            function(x, y, weight=[1.0, 2.0, 3.0])


@pytest.mark.parametrize("function", [t.lovasz_hinge, t.lovasz_softmax], ids=lambda f: f.__name__)
def test_a_compiled_graph_looks_at_its_weights(function):
    x, y = draw(function, "cpu")
    weight = torch.tensor([1.0, NAN, 1.0])

    def step(scores, target, w):
        return function(scores, target, weight=w, **options_of(function))

    torch._dynamo.reset()
    compiled = torch.compile(step, backend="aot_eager", fullgraph=HAS_OPERATORS)
    with pytest.raises((RuntimeError, ValueError), match="weight must be finite"):
        compiled(x, y, weight)
    good = torch.ones(3)
    torch.testing.assert_close(compiled(x, y, good), step(x, y, good))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_options_of_a_wrong_type_in_one_sentence(function):
    x, y = draw(function, "cpu")
    make = FUNCTIONS[function]
    for options, kind, words in [
        ({"ignore_index": 2**63}, ValueError, "ignore_index must fit in 64 bits"),
        ({"ignore_index": 10**400}, ValueError, "ignore_index must fit in 64 bits"),
        ({"ignore_index": True}, TypeError, "ignore_index must be an integer"),
        ({"ignore_index": 1.0}, TypeError, "ignore_index must be an integer"),
        ({"per_image": "no"}, TypeError, "per_image must be a bool"),
        ({"reduction": "max"}, ValueError, "reduction must be"),
        ({"reduction": None}, ValueError, "reduction must be"),
        ({"loss": 3}, TypeError, "loss must be"),
    ]:
        with pytest.raises(kind, match=words):
            function(x, y, **options)
        with pytest.raises(kind, match=words):
            make(**options)
    with pytest.raises(TypeError, match="across_ranks must be a bool"):
        make(across_ranks="no")


def test_the_scale_of_the_margin_is_a_number_with_an_inverse():
    x, y = draw(t.margin_rescaling, "cpu")
    for scale in (0.0, -1.0, NAN, INF, 5e-324, 10**400):
        with pytest.raises(ValueError, match="scale must be positive and finite"):
            t.margin_rescaling(x, y, scale=scale)
    for scale in (True, "1", None, [1.0], 1j):
        with pytest.raises(TypeError, match="scale must be a number"):
            t.MarginRescalingLoss(scale=scale)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_meta_tensors_have_shapes_and_types(function):
    x, y = draw(function, "cpu", torch.float32)
    for reduction in ("mean", "none"):
        options = {"reduction": reduction, "per_image": True}
        expected = function(x, y, **options)
        value = function(x.to("meta"), y.to("meta"), **options)
        assert (value.shape, value.dtype) == (expected.shape, expected.dtype)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("buckets", [None, 8192])
@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 3, 0), (0, 3, 0)], ids=str)
def test_softmax_of_nothing_is_no_loss(shape, buckets, device):
    x = torch.zeros(shape, device=device)
    y = torch.zeros(shape[0], shape[2], dtype=torch.long, device=device)
    for per_image in (False, True):
        for reduction in ("mean", "sum", "none"):
            options = {"per_image": per_image, "reduction": reduction, "buckets": buckets}
            value, gradient = answer(t.lovasz_softmax, x, y, **options)
            assert (value == 0).all()
            assert gradient.shape == shape


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("buckets", [None, 8192])
@pytest.mark.parametrize("loss", ["jaccard", "exponential"])
def test_infinite_and_undefined_scores(loss, buckets, dtype, place, monkeypatch):
    """The limit where there is one, an infinite value, NaN for a set with a NaN; in each method."""
    device = go_to(place, monkeypatch)
    options = {"per_image": True, "reduction": "none", "buckets": buckets}
    target = torch.tensor([[1, 1, 0, 0, 1]] * 4, device=device)
    far = torch.tensor([0.5, 2.0, -0.25, 0.75, -0.5], device=device)
    scores = far.repeat(4, 1).to(dtype)
    scores[0, 0] = NAN
    scores[1, 0] = -INF  # infinitely wrong
    scores[2, 0] = INF  # infinitely right
    values, gradient = answer(
        lambda x, y, **rest: t.lovasz_hinge(x, y, loss, **rest), scores, target, **options
    )
    assert values[0].isnan()
    assert values[1] == INF
    finite = scores[2:].clone()
    finite[0, 0] = 1e4
    limit, slopes = answer(
        lambda x, y, **rest: t.lovasz_hinge(x, y, loss, **rest), finite, target[2:], **options
    )
    torch.testing.assert_close(values[2:], limit)
    torch.testing.assert_close(gradient[2:], slopes)
    # Infinitely wrong: first in every order, so that its gain is that of one mistake.
    near = scores[1:2].clone()
    near[0, 0] = -1e4
    expected = answer(
        lambda x, y, **rest: t.lovasz_hinge(x, y, loss, **rest), near, target[:1], **options
    )[1]
    torch.testing.assert_close(gradient[1:2, :1], expected[:, :1])
    assert gradient[1:].isfinite().all()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("buckets", [None, 8192])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_softmax_of_infinite_and_undefined_logits(dtype, buckets, place, monkeypatch):
    device = go_to(place, monkeypatch)
    x, y = draw(t.lovasz_softmax, device, dtype)
    x = x.detach()
    for reduction in ("mean", "sum"):
        options = {"buckets": buckets, "reduction": reduction}
        lowest, least = x.clone(), x.clone()
        lowest[0, 1, 2], least[0, 1, 2] = -INF, -1e4  # a probability of 0
        torch.testing.assert_close(
            t.lovasz_softmax(lowest, y, **options), t.lovasz_softmax(least, y, **options)
        )
        for wrong in (NAN, INF):  # of two infinities the softmax is undefined, and torch's of one
            spoilt = x.clone()
            spoilt[0, 1, 2] = wrong
            assert t.lovasz_softmax(spoilt, y, **options).isnan()
            void = y.clone()
            void[0, 2] = 255
            options["ignore_index"] = 255
            assert t.lovasz_softmax(spoilt, void, **options).isfinite()
            del options["ignore_index"]


def test_logits_are_no_probabilities():
    x, y = draw(t.lovasz_softmax, "cpu")
    for reduction in ("mean", "none"):
        for buckets in (None, 8192):
            options = {"from_logits": False, "reduction": reduction, "buckets": buckets}
            with pytest.raises(ValueError, match=r"input must hold probabilities in \[0, 1\]"):
                t.lovasz_softmax(3 * x, y, **options)
            assert t.lovasz_softmax(x.softmax(1), y, **options).isfinite().all()


# ----------------------------------------------------------------------- devices without float64

OVERLAPS = [
    t.SoftDiceLoss(smooth=1.0),
    t.TverskyLoss(alpha=0.3, beta=0.7, per_image=True, weight=[1.0, 2.0, 3.0]),
    t.JaccardMetricLoss(per_image=True, average="classes", worst=0.5),
    t.DiceSemimetricLoss(ignore_index=2),
    t.WithCrossEntropy(t.JaccardMetricLoss(weight=[1.0, 2.0, 3.0]), 0.5, label_smoothing=0.1),
    t.WithCrossEntropy(t.LovaszSoftmaxLoss("dice")),
]


@pytest.mark.filterwarnings("ignore:the submodular part of FBeta")
@pytest.mark.parametrize("criterion", [*CRITERIA, *SOFTMAX, *OVERLAPS], ids=repr)
def test_losses_need_no_float64_on_a_device(criterion):
    like = t.lovasz_softmax if criterion in SOFTMAX + OVERLAPS else criterion
    x, y = draw(like, "cpu", torch.float32)
    expected, gradient = answer(criterion, x, y)
    with SinglePrecisionDevice():
        away = criterion.to("lazy")  # a weight too
        ours, slopes = answer(away, x.detach().to("lazy"), y.to("lazy"))
        assert ours.device.type == slopes.device.type == "lazy"
        ours, slopes = ours.cpu(), slopes.cpu()
        criterion.to("cpu")
    torch.testing.assert_close(ours, expected, rtol=0, atol=0)
    torch.testing.assert_close(slopes, gradient, rtol=0, atol=0)


def test_instances_and_scores_need_no_float64_on_a_device():
    x, y = draw(t.lovasz_softmax, "cpu", torch.float32)
    x = x.detach()
    components = torch.tensor([[1, 1, 0, 2, 0, 0, 3], [0, 0, 0, 0, 4, 4, 0]])
    criterion = t.InstanceLoss(assign="nearest")
    expected = answer(criterion, x[:, 0], components)
    score = t.SetScore("dice", n_classes=3, per_image=True, weight=[1.0, 2.0, 3.0])
    reported = score(x, y)
    score.reset()
    with SinglePrecisionDevice():
        ours = answer(criterion, x[:, 0].to("lazy"), components.to("lazy"))
        for part, known in zip(ours, expected, strict=True):
            torch.testing.assert_close(part.cpu(), known, rtol=0, atol=0)
        score.to("lazy").update(x.to("lazy"), y.to("lazy"))
        assert torch.equal(score.compute(), reported)
        weight = torch.tensor([1.0, 2.0, 3.0]).to("lazy")  # given where the logits are
        t.lovasz_softmax(x.to("lazy"), y.to("lazy"), weight=weight)


@pytest.mark.parametrize("loss", ["dice", "hamming"])
def test_decisions_need_no_float64_on_a_device(loss):
    x, y = draw(t.lovasz_softmax, "cpu", torch.float32)
    x, presence = x.detach(), torch.tensor([[0.2, 0.5, 1.0], [0.9, 0.1, 0.7]])
    options = {"activation": "softmax", "per_image": True, "per_class": True, "ignore_index": 2}
    known = t.decide(x, loss, target=y, presence=presence, **options)
    with SinglePrecisionDevice():
        ours = t.decide(
            x.to("lazy"), loss, target=y.to("lazy"), presence=presence.to("lazy"), **options
        )
        assert ours.mask.device.type == "lazy"
        assert torch.equal(ours.mask.cpu(), known.mask)
    assert torch.equal(ours.expected, known.expected)  # on the host, in double precision
    assert torch.equal(ours.bound, known.bound)
