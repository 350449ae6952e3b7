"""Autograd, torch.compile and the custom operators themselves."""

import pytest
from torch_cases import CRITERIA, DEVICES, SOFTMAX, draw, torch

import setwise as sw
from setwise.torch._operators._library import HAS_OPERATORS

t = sw.torch
# Without operators a compiled graph ends before a loss and goes on after it.
OPERATORS = pytest.mark.skipif(not HAS_OPERATORS, reason="torch is too old for operators")


@pytest.mark.filterwarnings("ignore:the submodular part of")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("criterion", CRITERIA + SOFTMAX[:3], ids=repr)
def test_gradcheck(criterion, device):
    x, y = draw(criterion, device)
    criterion = criterion.to(device)
    assert torch.autograd.gradcheck(lambda z: criterion(z, y), x)
    # Piecewise linear in the scores: the second derivative is 0, and it can be asked for.
    if not isinstance(criterion, t.LovaszSoftmaxLoss):
        assert torch.autograd.gradgradcheck(lambda z: criterion(z, y) ** 2, x)


@pytest.mark.filterwarnings("ignore:the submodular part of")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("criterion", CRITERIA + SOFTMAX, ids=repr)
def test_compiles_without_a_graph_break(criterion, device):
    x, y = draw(criterion, device)
    criterion = criterion.to(device)

    def step(scores, target):
        return criterion(2 * scores, target).sum()

    torch._dynamo.reset()  # one piece of code may be compiled a few times only
    compiled = torch.compile(step, fullgraph=HAS_OPERATORS, backend="aot_eager")
    value, expected = compiled(x, y), step(x, y)
    torch.testing.assert_close(value, expected)
    (slope,) = torch.autograd.grad(value, x)
    (expected_slope,) = torch.autograd.grad(expected, x)
    torch.testing.assert_close(slope, expected_slope)


OLD = pytest.mark.skipif(
    torch.__version__ < (2, 12), reason="torch 2.11 takes names for constants, objects not"
)


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param("jaccard", id="name"),
        pytest.param(sw.losses.Jaccard(), id="object", marks=OLD),
    ],
)
def test_functions_compile_without_a_graph_break(loss):
    x, y = torch.randn(20, requires_grad=True), torch.rand(20) < 0.5

    def step(scores, target):
        first = t.lovasz_hinge(scores, target, loss) + t.decomposed_hinge(scores, target)
        return first + t.slack_rescaling(scores, target) + t.margin_rescaling(scores, target)

    compiled = torch.compile(step, fullgraph=HAS_OPERATORS, backend="aot_eager")
    torch.testing.assert_close(compiled(x, y), step(x, y))


def test_dynamic_shapes_compile_once():
    criterion = t.LovaszHingeLoss("exponential")
    compiled = torch.compile(criterion, fullgraph=HAS_OPERATORS, backend="aot_eager", dynamic=True)
    for n in (5, 9, 13):
        x, y = torch.randn(n, requires_grad=True), torch.rand(n) < 0.5
        torch.testing.assert_close(compiled(x, y), criterion(x, y))


@OPERATORS
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("surrogate", ["lovasz", "decomposed", "margin", "slack"])
def test_opcheck_of_hinge(surrogate, dtype, device):
    x = torch.randn(2, 6, device=device).to(dtype).requires_grad_()
    y = torch.rand(2, 6, device=device) < 0.5
    loss = "dice" if surrogate == "decomposed" else "jaccard"
    t.LovaszHingeLoss("jaccard")
    t.decomposed_hinge(torch.zeros(2), torch.ones(2))
    torch.library.opcheck(
        torch.ops.setwise.hinge.default, (x, y, surrogate, loss, float("nan"), 0, 1.0)
    )


@OPERATORS
@pytest.mark.parametrize("device", DEVICES)
def test_opcheck_of_the_classes(device):
    x = torch.randn(2, 3, 6, device=device, requires_grad=True)
    y = torch.randint(0, 3, (2, 6), device=device)
    t.lovasz_softmax(x, y)
    torch.library.opcheck(
        torch.ops.setwise.softmax.default,
        (x, y, "jaccard", None, [0, 2], True, None, True, 0, True),
    )
    torch.library.opcheck(
        torch.ops.setwise.probabilities.default, (x, y, "jaccard", None, [0, 2], True, 0)
    )


def kept_bytes(criterion, x, y):
    """Bytes of distinct memory that the graph of the loss keeps, the input apart."""
    kept = {}

    def note(tensor):
        if tensor.untyped_storage().data_ptr() != x.untyped_storage().data_ptr():
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        criterion(x, y).sum()
    return sum(kept.values())


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_at_most_eight_bytes_an_element_are_kept(dtype):
    x = torch.randn(2, 4, 50, 50).to(dtype).requires_grad_()
    y, c = torch.rand(2, 4, 50, 50) < 0.5, torch.randint(0, 4, (2, 50, 50))
    most = 8 * x.numel() + 4096
    for criterion in (
        t.LovaszHingeLoss(),
        t.LovaszHingeLoss(per_class=True),
        t.LovaszHingeLoss(buckets=8192),
        t.DecomposedHingeLoss(),
        t.MarginRescalingLoss(),
        t.SlackRescalingLoss(),
    ):
        assert 0 < kept_bytes(criterion, x, y) <= most
    assert 0 < kept_bytes(t.LovaszSoftmaxLoss(), x, c) <= most
    if dtype != torch.float64:
        assert 0 < kept_bytes(t.LovaszSoftmaxLoss(reduction="none"), x, c) <= most
