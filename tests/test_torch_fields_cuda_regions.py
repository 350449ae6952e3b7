"""Layers of regions on a CUDA device against the compiled solver. Skipped where no GPU is."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import setwise as sw  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

t = sw.torch


def draw(shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.randn(*shape, generator=generator).to(dtype)


def regions_of(batch, height, width, number, seed=0, none=True):
    """(B, H, W): to which of scattered points is a pixel nearest; a few in no region."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    maps = []
    for _ in range(batch):
        points = rng.uniform(size=(number, 2)) * [height, width]
        far = (y[..., None] - points[:, 0]) ** 2 + (x[..., None] - points[:, 1]) ** 2
        near = far.argmin(axis=2)
        if none:
            near[rng.uniform(size=near.shape) < 0.1] = -1
        maps.append(near)
    return torch.from_numpy(np.array(maps))


def on_device(logits, weight, maps, region_weights, alpha, tol, **options):
    from setwise.torch._cuda._fields._regions import region_bound
    from setwise.torch._fields._graph import grid_graph

    graph = grid_graph(tuple(logits.shape[2:]), None)
    weights = torch.full((len(logits), *graph.slots), weight, device="cuda", dtype=logits.dtype)
    layers = torch.stack([m.flatten(1) for m in maps], 1).cuda()
    found = region_bound(
        logits.flatten(2).cuda(),
        weights,
        graph.sides,
        graph.directions,
        layers,
        region_weights.cuda(),
        (alpha,) * len(maps),
        tol,
        **options,
    )
    assert found is not None
    return found


CASES = [
    ((1, 3, 12, 15), (1, 5), 0.8),
    ((3, 5, 20, 18), (7, 20, 60), 0.8),
    ((2, 2, 16, 16), (4,), 0.5),
    ((1, 21, 24, 40), (3, 9, 40), 0.8),
    ((1, 4, 10, 10), (100,), 0.3),
]


@pytest.mark.parametrize(("shape", "numbers", "alpha"), CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_agrees_with_the_host_within_the_gap(shape, numbers, alpha, dtype):
    logits = draw(shape, dtype=dtype)
    maps = [regions_of(shape[0], *shape[2:], k, k) for k in numbers]
    given = draw((shape[0], len(maps), max(numbers)), 5, dtype).abs()
    given[:, :, 0] = 0  # one without weight
    found = on_device(logits, 0.7, maps, given, alpha, 1e-4)
    layer = t.FieldMarginals(
        0.7, region_weight=[1.0] * len(maps), alpha=alpha, bounds=True, tol=1e-8
    )
    exact = layer(logits.double(), regions=maps, region_weights=given.double())
    ours, gap = found.upper.cpu(), found.gap.cpu()
    least = exact.log_partition_upper - exact.gap
    assert (ours >= least - 1e-9).all()
    assert (ours - gap <= exact.log_partition_upper + 1e-9).all()
    size = (ours - logits.double().amax(1).flatten(1).sum(1)).abs().clamp(min=1)
    assert (gap <= 1.001e-4 * size).all()
    far = (found.p.cpu().double().view(shape) - exact.probabilities).square().flatten(1).sum(1)
    assert (far <= 2 * gap + 1e-6).all()  # Pinsker


def test_a_step_is_a_projection_for_every_label():
    from scipy.optimize import isotonic_regression

    from setwise.torch._cuda._fields._regions import _Layer

    maps = regions_of(2, 40, 50, 6).flatten(1)
    weights = draw((2, 6), 1, torch.float64).abs()
    layer = _Layer(maps.cuda(), 6, weights.cuda(), 0.8, 3)
    assert layer.prepare(int(layer.sizes.max()))
    s, logs = draw((2, 3, 2000), 2).cuda(), draw((2, 3, 2000), 3).cuda()
    z, before = (s + logs).double().cpu().numpy(), logs.cpu().clone()
    layer.launch(0, s, logs, logs)
    outside = (maps < 0)[:, None].expand(2, 3, 2000)
    torch.testing.assert_close(logs.cpu()[outside], before[outside])
    for b in range(2):
        for r in range(6):
            here = np.flatnonzero(maps[b].numpy() == r)
            size = len(here)
            n = np.arange(size + 1)
            h = weights[b, r].item() * ((size - n) ** 0.8 - size**0.8 + n * size**-0.2)
            for j in range(3):
                order = here[np.argsort(-z[b, j, here], kind="stable")]
                pooled = isotonic_regression(z[b, j, order] - np.diff(h), increasing=False).x
                np.testing.assert_allclose(logs[b, j, order].cpu(), pooled, atol=1e-4)
                np.testing.assert_allclose(s[b, j, order].cpu(), z[b, j, order] - pooled, atol=1e-4)
    p = torch.softmax(logs, 1)
    layer.launch(1, s, p, p)
    above, apart = layer.out.cpu().sum(1).unbind(1)
    assert (above >= 0).all()
    assert (above < 1e-2).all()
    prices = sw.torch._fields._problem.layer_prices(p, maps[:, None].cuda(), (0.8,), 6)[:, 0].cpu()
    inside = (maps >= 0)[:, None]
    paid = (s.double() * p.double()).cpu().mul(inside).flatten(1).sum(1)
    torch.testing.assert_close(apart, (weights * prices).sum(1) - paid, rtol=0, atol=1e-2)


def test_a_region_of_many_pixels_and_one_too_large():
    from setwise.torch._cuda._fields._regions import region_bound

    logits = draw((1, 2, 140, 160))
    maps = [torch.zeros(1, 140, 160, dtype=torch.int64)]
    found = on_device(logits, 0.3, maps, torch.ones(1, 1, 1), 0.8, 1e-3)
    layer = t.FieldMarginals(0.3, region_weight=1.0, tol=1e-4, bounds=True)
    exact = layer(logits.double(), regions=maps)
    assert found.upper.item() >= (exact.log_partition_upper - exact.gap).item() - 1e-9
    assert found.upper.item() - found.gap.item() <= exact.log_partition_upper.item() + 1e-9
    n = 160 * 160
    grid = (torch.zeros(1, 2, n, device="cuda"), torch.zeros(1, 2, n, device="cuda"))
    region = torch.zeros(1, 1, n, dtype=torch.int64, device="cuda")
    assert (
        region_bound(
            *grid, (160, 160), ((0, 1), (1, 0)), region, torch.ones(1, 1, 1).cuda(), (0.8,), 1e-3
        )
        is None
    )


def test_forbidden_labels():
    logits = draw((1, 3, 9, 9))
    logits[0, 1, :4] = -torch.inf
    maps = [regions_of(1, 9, 9, 4)]
    found = on_device(logits, 0.5, maps, torch.ones(1, 1, 4), 0.8, 1e-4)
    p = found.p.cpu().view(1, 3, 9, 9)
    assert (p[0, 1, :4] == 0).all()
    layer = t.FieldMarginals(0.5, region_weight=1.0, tol=1e-7)
    torch.testing.assert_close(p.double(), layer(logits.double(), regions=maps), rtol=0, atol=3e-2)


def test_goes_on_from_its_state():
    logits, maps = draw((1, 6, 32, 32)), [regions_of(1, 32, 32, 9)]
    cold = on_device(logits, 1.0, maps, torch.ones(1, 1, 9), 0.8, 1e-3)
    warm = on_device(logits, 1.0, maps, torch.ones(1, 1, 9), 0.8, 1.1e-3, state=cold.state)
    assert warm.rounds == 1
    torch.testing.assert_close(warm.upper, cold.upper, rtol=1e-3, atol=0)


def test_layers_stay_on_the_device(monkeypatch):
    from setwise.torch._fields import _host_solver

    x, y, maps = draw((2, 3, 12, 12)), torch.zeros(2, 12, 12).long(), regions_of(2, 12, 12, 5)
    host = t.FieldLikelihoodLoss(0.5, region_weight=0.7)(x, y, regions=maps)

    def never(*arguments, **options):
        raise AssertionError("solved on the host")

    monkeypatch.setattr(_host_solver, "solve", never)
    loss = t.FieldLikelihoodLoss(0.5, region_weight=0.7, learn=True).cuda()
    z = x.cuda().requires_grad_()
    value = loss(z, y.cuda(), regions=maps.cuda())
    torch.testing.assert_close(value.cpu(), host, rtol=2e-3, atol=1e-3)
    value.backward()
    assert torch.isfinite(z.grad).all()
    assert torch.isfinite(loss.raw_region_weight.grad).all()


def test_derivatives_are_near_those_of_the_host():
    x, g, maps = draw((2, 4, 24, 24)), draw((2, 4, 24, 24), 1), regions_of(2, 24, 24, 12)
    slopes = []
    for device, dtype, options in (
        ("cuda", torch.float32, {}),
        ("cpu", torch.float64, {"tol": 1e-9, "backward_tol": 1e-8}),
    ):
        layer = t.FieldMarginals(0.5, region_weight=0.5, learn=True, **options).to(device)
        z = x.to(device, dtype).requires_grad_()
        p = layer(z, regions=maps.to(device))
        (p * g.to(device, dtype)).sum().backward()
        slopes.append((z.grad.cpu().double(), layer.raw_region_weight.grad.cpu().double()))
    for ours, theirs in zip(*slopes, strict=True):
        assert (ours - theirs).norm() <= 0.15 * theirs.norm()
