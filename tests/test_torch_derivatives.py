"""Every derivative of every loss: torch.func, forward mode, vmap, and second derivatives."""

import pytest
from torch.autograd import forward_ad
from torch_cases import CRITERIA, DEVICES, SOFTMAX, draw, torch

import setwise as sw

t = sw.torch
func = torch.func

BUCKETS = [
    t.LovaszHingeLoss(buckets=8192, per_image=True),
    t.LovaszHingeLoss("exponential", buckets=8192, ignore_index=255),
]
MORE = [
    t.LovaszSoftmaxLoss(classes=[2, 0, 1], per_image=True, weight=[1.0, 0.0, 2.5]),
    t.LovaszSoftmaxLoss(classes=[1, 0], reduction="sum", weight=[1.0, 2.0, 4.0]),
    t.LovaszSoftmaxLoss(buckets=8192, reduction="none", per_image=True),
]
EVERY = CRITERIA + SOFTMAX + BUCKETS + MORE
EXACT = [c for c in CRITERIA + SOFTMAX + MORE if c.options.buckets is None]

pytestmark = [
    pytest.mark.filterwarnings("ignore:the submodular part of"),
    pytest.mark.filterwarnings("ignore:.torch.jit.*deprecated:DeprecationWarning"),  # torch's own
]


def case(criterion, device, pixels=5):
    """A scalar function of scores that is not linear in the loss, and scores."""
    x, y = draw(criterion, device, pixels=pixels)
    criterion = criterion.to(device)
    return (lambda z: criterion(z, y).square().sum()), x.detach()


def gradient_of(function, x):
    x = x.detach().requires_grad_()
    return torch.autograd.grad(function(x), x)[0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("criterion", EVERY, ids=repr)
def test_first_derivatives_are_those_of_backward(criterion, device):
    function, x = case(criterion, device)
    gradient = gradient_of(function, x)
    assert gradient.abs().sum() > 0
    v = torch.randn(x.shape, dtype=x.dtype, generator=torch.Generator().manual_seed(1)).to(device)
    along = (gradient * v).sum()
    torch.testing.assert_close(func.grad(function)(x), gradient)
    torch.testing.assert_close(func.jacrev(function)(x), gradient)
    torch.testing.assert_close(func.jacfwd(function)(x), gradient)
    value, tangent = func.jvp(function, (x,), (v,))
    torch.testing.assert_close(value, function(x))
    torch.testing.assert_close(tangent, along)
    with forward_ad.dual_level():
        dual = forward_ad.unpack_dual(function(forward_ad.make_dual(x, v)))
    torch.testing.assert_close(dual.tangent, along)
    # Each loss of a batch of batches by itself, at any place of the dimension.
    batch = torch.stack([x, -x, 0.5 * x])
    expected = torch.stack([gradient_of(function, z) for z in batch])
    torch.testing.assert_close(func.vmap(func.grad(function))(batch), expected)
    last = func.vmap(func.grad(function), in_dims=-1)(batch.movedim(0, -1))
    torch.testing.assert_close(last, expected)
    values = torch.stack([function(z) for z in batch])
    torch.testing.assert_close(func.vmap(function)(batch), values)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("criterion", EXACT, ids=repr)
def test_second_derivatives_by_differences(criterion, device):
    function, x = case(criterion, device, pixels=3)
    hessian = func.hessian(function)(x).reshape(x.numel(), x.numel())
    step = 1e-6
    rows = []
    for i in range(x.numel()):
        e = torch.zeros_like(x)
        e.view(-1)[i] = step
        change = gradient_of(function, x + e) - gradient_of(function, x - e)
        rows.append(change.reshape(-1) / (2 * step))
    torch.testing.assert_close(hessian, torch.stack(rows), rtol=1e-4, atol=1e-6)
    # Forward over reverse, by hand.
    v = torch.ones_like(x)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.clone().requires_grad_(), v)
        (slope,) = torch.autograd.grad(function(dual), dual, create_graph=True)
        tangent = forward_ad.unpack_dual(slope).tangent
    torch.testing.assert_close(tangent.reshape(-1), hessian.sum(1), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("criterion", EXACT, ids=repr)
def test_a_second_backward_pass_is_right_or_refused(criterion, device):
    function, x = case(criterion, device, pixels=3)
    x.requires_grad_()
    options = criterion.options
    if isinstance(criterion, t.LovaszSoftmaxLoss) and options.reduction == "mean":
        with pytest.raises(NotImplementedError, match="reduction='sum' or 'none'"):
            torch.autograd.grad(function(x), x, create_graph=True)
        return
    (slope,) = torch.autograd.grad(function(x), x, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), x)
    expected = func.jvp(func.grad(function), (x.detach(),), (torch.ones_like(x),))[1]
    torch.testing.assert_close(second, expected)


def test_the_hessian_of_a_hinge_is_zero_and_that_of_the_softmax_is_not():
    x, y = draw(t.lovasz_hinge, "cpu")
    for function in (t.lovasz_hinge, t.slack_rescaling, t.margin_rescaling, t.decomposed_hinge):
        assert (func.hessian(lambda z, f=function: f(z, y))(x.detach()) == 0).all()
    x, y = draw(t.lovasz_softmax, "cpu")
    assert (func.hessian(lambda z: t.lovasz_softmax(z, y))(x.detach()) != 0).any()
    p = x.detach().softmax(1).requires_grad_()
    value = t.lovasz_softmax(p, y, from_logits=False)
    (slope,) = torch.autograd.grad(value**2, p, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), p)
    gradient = gradient_of(lambda q: t.lovasz_softmax(q, y, from_logits=False), p)
    torch.testing.assert_close(second, 2 * gradient * gradient.sum())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_transforms_in_the_precision_of_the_input(dtype):
    for criterion in (t.LovaszHingeLoss(per_image=True), t.LovaszSoftmaxLoss()):
        x, y = draw(criterion, "cpu", dtype)
        x = x.detach()
        gradient = gradient_of(lambda z, c=criterion, y=y: c(z, y), x)
        ours = func.grad(lambda z, c=criterion, y=y: c(z, y))(x)
        assert ours.dtype == gradient.dtype == dtype
        torch.testing.assert_close(ours, gradient)
        value, tangent = func.jvp(lambda z, c=criterion, y=y: c(z, y), (x,), (x,))
        assert value.dtype == tangent.dtype == torch.float32
        torch.testing.assert_close(tangent, (gradient * x).float().sum(), rtol=2e-2, atol=1e-2)


def test_targets_and_weights_may_be_mapped_over():
    x, y = draw(t.lovasz_hinge, "cpu")
    x = x.detach()
    targets = torch.stack([y, ~y])
    expected = torch.stack([t.lovasz_hinge(x, z) for z in targets])
    torch.testing.assert_close(func.vmap(lambda z: t.lovasz_hinge(x, z))(targets), expected)
    x, y = draw(t.lovasz_softmax, "cpu")
    x = x.detach()
    targets = torch.stack([y, (y + 1) % 3, torch.zeros_like(y)])
    expected = torch.stack([t.lovasz_softmax(x, z) for z in targets])
    torch.testing.assert_close(func.vmap(lambda z: t.lovasz_softmax(x, z))(targets), expected)
    weights = torch.tensor([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]])
    expected = torch.stack([t.lovasz_softmax(x, y, weight=w) for w in weights])
    mapped = func.vmap(lambda w: t.lovasz_softmax(x, y, weight=w))(weights)
    torch.testing.assert_close(mapped, expected)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_weights_have_their_derivative_too(reduction):
    weight = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64, requires_grad=True)
    x, y = draw(t.lovasz_softmax, "cpu")
    z, labels = draw(t.lovasz_hinge, "cpu")
    for loss in (
        lambda w: t.lovasz_softmax(x.detach(), y, weight=w, reduction=reduction),
        lambda w: t.lovasz_hinge(z.detach(), labels, per_class=True, weight=w, reduction=reduction),
    ):
        assert torch.autograd.gradcheck(loss, weight)


@pytest.mark.parametrize("name", ["grad", "jvp", "vmap"])
def test_a_compiler_runs_transforms_as_they_are_or_refuses(name):
    """Never a derivative that is zero because the graph has no rule for it."""
    x, y = draw(t.lovasz_hinge, "cpu", pixels=2)
    x = x.detach()

    def function(z):
        return t.lovasz_hinge(z, y) ** 2

    transform = {
        "grad": func.grad(function),
        "jvp": lambda z: func.jvp(function, (z,), (torch.ones_like(z),))[1],
        "vmap": func.vmap(func.grad(function), in_dims=0),
    }[name]
    scores = torch.stack([x, -x]) if name == "vmap" else x
    torch._dynamo.reset()
    compiled = torch.compile(transform, backend="aot_eager")
    torch.testing.assert_close(compiled(scores), transform(scores))
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(transform, backend="aot_eager", fullgraph=True)(scores)
