"""The bound by trees on a CUDA device against the compiled solver. Skipped where no GPU is."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import setwise as sw  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

t = sw.torch


def draw(shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.randn(*shape, generator=generator).to(dtype)


def on_device(logits, weights, tol, **options):
    """The kernels' answer for logits (B, L, H, W) and weights (B, 2, H, W)."""
    from setwise.torch._cuda._fields._trees import tree_bound

    right, down = weights.flatten(2).cuda().unbind(1)
    found = tree_bound(logits.flatten(2).cuda(), right, down, logits.shape[2:], tol, **options)
    assert found is not None
    return found


def on_host(logits, weights, tol=1e-9):
    """The compiled solver's: probabilities (B, L, H, W), bound, gap, derivative in the weights."""
    w = weights.double().requires_grad_()
    layer = t.FieldMarginals(1.0, method="trees", tol=tol, bounds=True)
    post = layer(logits.double(), weights=w)
    post.log_partition_upper.sum().backward()
    return post.probabilities.detach(), post.log_partition_upper.detach(), post.gap, w.grad


SHAPES = [
    (1, 2, 17, 23),
    (3, 5, 16, 9),
    (2, 21, 12, 40),
    (1, 40, 9, 8),
    (1, 100, 5, 6),
    (1, 3, 1, 30),
    (1, 3, 30, 1),
    (2, 4, 65, 3),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_agrees_with_the_host_within_the_gap(shape, dtype):
    logits = draw(shape, dtype=dtype)
    weights = draw((shape[0], 2, *shape[2:]), 1, dtype).abs() / 2
    found = on_device(logits, weights, 1e-5)
    p, upper, gap, slopes = on_host(logits, weights)
    ours, theirs = found.upper.cpu(), found.gap.cpu()
    assert (ours >= upper - gap - 1e-9).all()
    assert (ours - theirs <= upper + 1e-9).all()
    size = (ours - logits.double().amax(1).flatten(1).sum(1)).abs().clamp(min=1)
    assert (theirs <= 1.001e-5 * size).all()
    torch.testing.assert_close(found.p.cpu().double().view(shape), p, rtol=0, atol=5e-3)
    differ = found.differ.cpu().view(slopes.shape)
    torch.testing.assert_close(differ, -slopes, rtol=0, atol=5e-3)


@pytest.mark.parametrize(("n_labels", "weight"), [(2, 3.0), (6, 1.5)])
def test_pass_by_pass_it_is_the_host(n_labels, weight):
    logits, weights = draw((1, n_labels, 20, 13)), torch.full((1, 2, 20, 13), weight)
    from setwise.inference._marginals._trees._tree_descent import TreeDescent

    unary = -logits.double()[0].flatten(1).T.contiguous().numpy()
    edges = sw.fields.grid_edges((20, 13))
    descent = TreeDescent(sw.fields.Field(unary) + sw.fields.Potts(edges, weight), 1.0, 1)
    descent.resume(descent.state())
    descent.begin()
    for k in range(1, 7):
        descent.sweep()
        descent.measure()
        found = on_device(logits, weights, 0.0, limit=k, first_check=k)
        assert abs(found.upper.item() - descent.value) <= 1e-6 * abs(descent.value)
        assert found.gap.item() == pytest.approx(descent.gap, rel=0.02, abs=1e-3)
        np.testing.assert_allclose(
            found.p[0].T.cpu().numpy(), descent.probabilities(), rtol=0, atol=1e-5
        )


def test_chains_are_exact():
    logits = draw((1, 4, 1, 12), 3, torch.float64)
    weights = draw((1, 2, 1, 12), 4, torch.float64).abs()
    found = on_device(logits, weights, 1e-6)
    field = sw.fields.Field(-logits[0, :, 0].T.contiguous().numpy())
    field = field + sw.fields.Potts(sw.fields.grid_edges((12,)), weights[0, 0, 0, :-1].numpy())
    exact = sw.marginals(field, "elimination")
    assert found.upper.item() == pytest.approx(exact.value, rel=1e-5)
    assert found.upper.item() >= exact.value - 1e-9
    np.testing.assert_allclose(found.p[0].T.cpu().numpy(), exact.probabilities, atol=1e-5)


def test_edges_without_weight_and_dear_ones():
    logits = draw((2, 5, 14, 15), 5)
    weights = draw((2, 2, 14, 15), 6).clamp(min=0)  # half of them 0
    for scale in (1.0, 100.0):
        found = on_device(logits, scale * weights, 1e-3, limit=200)
        _, upper, gap, _ = on_host(logits, scale * weights, 1e-6)
        assert (found.upper.cpu() >= upper - gap - 1e-9).all()
        assert (found.upper.cpu() - found.gap.cpu() <= upper + 1e-9).all()
    assert torch.isfinite(found.p).all()


def test_forbidden_labels():
    logits = draw((1, 3, 6, 6))
    logits[0, 1, :3] = -torch.inf
    weights = torch.full((1, 2, 6, 6), 0.7)
    p = on_device(logits, weights, 1e-6).p.cpu().double().view(1, 3, 6, 6)
    assert (p[0, 1, :3] == 0).all()
    torch.testing.assert_close(p, on_host(logits, weights)[0], rtol=0, atol=1e-3)


def test_large_logits_keep_their_digits():
    logits = draw((1, 4, 10, 10), 7, torch.float64) + 1e6
    weights = torch.full((1, 2, 10, 10), 1.0, dtype=torch.float64)
    found = on_device(logits, weights, 1e-5)
    _, upper, gap, _ = on_host(logits - 1e6, weights)
    assert (found.upper.cpu() >= 1e8 + upper - gap - 1e-6).all()
    assert (found.upper.cpu() - found.gap.cpu() <= 1e8 + upper + 1e-4).all()


def test_goes_on_from_its_messages():
    logits, weights = draw((1, 6, 32, 32)), torch.full((1, 2, 32, 32), 1.5)
    cold = on_device(logits, weights, 1e-4)
    warm = on_device(logits + 1e-3, weights, 1e-3, messages=cold.messages)
    assert warm.passes == 0 < cold.passes


@pytest.mark.parametrize("n_labels", [2, 5])
def test_derivatives_are_near_those_of_the_host(n_labels):
    x, g = draw((2, n_labels, 24, 24)), draw((2, n_labels, 24, 24), 1)
    slopes = []
    for device, dtype, options in (
        ("cuda", torch.float32, {}),
        ("cpu", torch.float64, {"tol": 1e-10, "backward_tol": 1e-9}),
    ):
        layer = t.FieldMarginals(0.7, learn=True, method="trees", **options).to(device)
        z = x.to(device, dtype).requires_grad_()
        (layer(z) * g.to(device, dtype)).sum().backward()
        slopes.append((z.grad.cpu().double(), layer.raw_weight.grad.cpu().double()))
    for ours, theirs in zip(*slopes, strict=True):
        assert (ours - theirs).norm() <= 0.02 * theirs.norm()


def test_layers_stay_on_the_device(monkeypatch):
    from setwise.torch._fields import _host_solver

    def never(*arguments, **options):
        raise AssertionError("solved on the host")

    x, y = draw((2, 3, 12, 12)), torch.zeros(2, 12, 12).long()
    host = t.FieldLikelihoodLoss(0.5, method="trees")(x, y)
    monkeypatch.setattr(_host_solver, "solve", never)
    loss = t.FieldLikelihoodLoss(0.5, learn=True, method="trees").cuda()
    z = x.cuda().requires_grad_()
    value = loss(z, y.cuda())
    torch.testing.assert_close(value.cpu(), host, rtol=2e-3, atol=1e-3)
    value.backward()
    assert torch.isfinite(z.grad).all()
    assert torch.isfinite(loss.raw_weight.grad).all()
