"""Layers of fields on a CUDA device against the compiled solvers. Skipped where no GPU is."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import setwise as sw  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

t = sw.torch


def draw(shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.randn(*shape, generator=generator).to(dtype)


CASES = [
    ((1, 2, 17, 23), None),
    ((3, 5, 16, 9), None),
    ((2, 3, 9, 8), 8),
    ((1, 4, 4, 5, 6), None),
    ((2, 21, 12, 12), None),
    ((1, 40, 8, 8), None),
    ((1, 3, 30), None),
    ((2, 9, 20, 61), None),  # several tiles
    ((1, 2, 65, 70), None),
    ((1, 3, 1, 33), None),
    ((100, 3, 5, 6), None),
    ((100, 2, 5, 6), 8),
]


@pytest.mark.parametrize(("shape", "connectivity"), CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_marginals_agree_within_the_gap(shape, connectivity, dtype):
    logits = draw(shape, dtype=dtype)
    p = t.FieldMarginals(0.7, connectivity=connectivity, tol=1e-4)(logits.cuda())
    from setwise.torch._cuda._fields._grid import grid_bound
    from setwise.torch._fields._graph import grid_graph

    graph = grid_graph(shape[2:], connectivity)
    flat = logits.flatten(2).cuda()
    weights = torch.full((shape[0], *graph.slots), 0.7, device="cuda", dtype=dtype)
    found = grid_bound(flat, weights, graph.sides, graph.directions, 1e-4)
    assert found is not None
    torch.testing.assert_close(found.p.to(dtype).view(shape), p)
    exact = t.FieldMarginals(0.7, connectivity=connectivity, bounds=True, tol=1e-9)(logits.double())
    least = exact.log_partition_upper - exact.gap
    upper, gap = found.upper.cpu(), found.gap.cpu()
    assert (upper >= least - 1e-9).all()
    assert (upper - gap <= exact.log_partition_upper + 1e-9).all()
    far = (p.cpu().double() - exact.probabilities).square().flatten(1).sum(1)
    assert (far <= 2 * gap + 1e-6).all()  # Pinsker


@pytest.mark.parametrize("n_labels", [2, 5])
@pytest.mark.parametrize("steps", [((0, 1), (1, 0)), ((0, 1), (1, 0), (1, 1))], ids=len)
def test_an_answer_goes_on_from_its_flows(n_labels, steps):
    from setwise.torch._cuda._fields._grid import grid_bound

    x = draw((2, n_labels, 20 * 30)).cuda()
    w = torch.full((2, len(steps), 20 * 30), 0.7, device="cuda")
    found = grid_bound(x, w, (20, 30), steps, 1e-4)
    x[1] += draw((n_labels, 20 * 30), 1).cuda()  # the first image is done at once, the second not
    again = grid_bound(x, w, (20, 30), steps, 1e-4, flow=found.flow)
    assert torch.equal(again.p[0], found.p[0])
    assert torch.equal(again.gap[0], found.gap[0])
    third = grid_bound(x, w, (20, 30), steps, 1e-4, flow=again.flow)
    assert (third.record[:, 0] == 0).all()
    assert torch.equal(third.p, again.p)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_images_in_turn_are_as_images_alone(n_labels):
    from setwise.torch._cuda._fields._grid import grid_bound

    sides, steps = (200, 300), ((0, 1), (1, 0))  # more tiles in all than blocks run at once
    x = draw((40 if n_labels == 2 else 7, n_labels, 200 * 300)).cuda()
    w = torch.linspace(0.1, 1.5, len(x), device="cuda").view(-1, 1, 1).expand(-1, 2, 200 * 300)
    found = grid_bound(x, w, sides, steps, 1e-4)
    again = grid_bound(x, w, sides, steps, 1e-4, flow=found.flow)
    assert (again.record[:, 0] == 0).all()
    assert torch.equal(again.p, found.p)
    for b in range(0, len(x), 3):
        alone = grid_bound(x[b : b + 1], w[b : b + 1], sides, steps, 1e-4)
        assert alone.record[0, 0] == found.record[b, 0]
        torch.testing.assert_close(alone.upper[0], found.upper[b], rtol=1e-12, atol=0)
        torch.testing.assert_close(alone.p[0], found.p[b])


@pytest.mark.parametrize("steps", [((0, 1), (1, 0)), ((0, 1), (1, 0), (1, 1))], ids=len)
def test_masses_that_vanish_beside_one_are_in_the_bound(steps):
    from setwise.torch._cuda._fields._grid import grid_bound

    logits = torch.zeros(1, 3, 300 * 300, dtype=torch.float64)
    logits[:, 1:] = -37.0
    w = torch.zeros(1, len(steps), 300 * 300, device="cuda")
    found = grid_bound(logits.cuda(), w, (300, 300), steps, 1e-4)
    exact = 300 * 300 * torch.log1p(2 * torch.tensor(-37.0).double().exp())
    assert found.upper.item() >= exact.item()


@pytest.mark.parametrize("steps", [((0, 1), (1, 0)), ((0, 1), (1, 0), (1, 1))], ids=len)
def test_a_weight_that_is_no_number_proves_nothing(steps):
    from setwise.torch._cuda._fields._grid import grid_bound

    w = torch.ones(2, len(steps), 20 * 30, device="cuda")
    w[1, 0, 7] = torch.nan
    found = grid_bound(draw((2, 3, 20 * 30)).cuda(), w, (20, 30), steps, 1e-4)
    assert torch.isfinite(found.upper[0])
    assert torch.isnan(found.upper[1])
    assert torch.isnan(found.gap[1])


def test_what_lies_between_the_tiles_that_are_looked_at_is_swept_to_its_end():
    from setwise.torch._cuda._fields._grid import grid_bound

    logits, w = draw((1, 5, 256, 256)), torch.full((1, 2, 256, 256), 0.4)
    w[..., 40:80, 40:80] = 6.0  # hard, and small
    on_device = (logits.flatten(2).cuda(), w.flatten(2).cuda())
    found = grid_bound(*on_device, (256, 256), ((0, 1), (1, 0)), 1e-4)
    size = (found.upper.cpu() - logits.double().amax(1).sum((1, 2))).clamp(min=1)
    assert (found.gap.cpu() <= 1.001e-4 * size).all()


@pytest.mark.parametrize("bad", ["nan", "inf"])
@pytest.mark.parametrize(
    "layer", ["FieldMarginals()", 'FieldMarginals(method="trees")', "FieldMAP()"]
)
def test_logits_that_are_no_numbers_are_refused(layer, bad):
    """By an assertion that nobody waits for, which ends a process's use of the device."""
    script = f"""
import torch, setwise as sw
x = torch.randn(2, 3, 40, 50, device="cuda")
sw.torch.{layer}(x)
torch.cuda.synchronize()
x[1, 2, 3, 4] = float({bad!r})
try:
    sw.torch.{layer}(x)
    torch.cuda.synchronize()
except (RuntimeError, ValueError):
    print("refused")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )
    assert "refused" in done.stdout, done.stderr[-2000:]


def test_forbidden_labels():
    logits = draw((1, 3, 6, 6))
    logits[0, 1, :3] = -torch.inf
    p = t.FieldMarginals(1.0, tol=1e-4)(logits.cuda())
    assert (p[0, 1, :3] == 0).all()
    q = t.FieldMarginals(1.0, tol=1e-7)(logits.double())
    torch.testing.assert_close(p.cpu().double(), q, rtol=0, atol=2e-2)


@pytest.mark.parametrize("n_labels", [2, 5])
def test_derivatives_are_near_those_of_the_host(n_labels):
    x, g = draw((2, n_labels, 24, 24)), draw((2, n_labels, 24, 24), 1)
    slopes = []
    for device, dtype, options in (
        ("cuda", torch.float32, {}),
        ("cpu", torch.float64, {"tol": 1e-10, "backward_tol": 1e-9}),
    ):
        layer = t.FieldMarginals(0.7, learn=True, **options).to(device)
        z = x.to(device, dtype).requires_grad_()
        (layer(z) * g.to(device, dtype)).sum().backward()
        slopes.append((z.grad.cpu().double(), layer.raw_weight.grad.cpu().double()))
    for ours, theirs in zip(*slopes, strict=True):
        assert (ours - theirs).norm() <= 0.1 * theirs.norm()


@pytest.mark.parametrize("n_labels", [2, 5])
@pytest.mark.parametrize("has_regions", [False, True])
def test_a_constant_takes_no_digits(n_labels, has_regions):
    small, g = (64 * draw((1, n_labels, 24, 24))).round() / 64, draw((1, n_labels, 24, 24), 1)
    layer = t.FieldMarginals(0.7, region_weight=0.2 if has_regions else None).cuda()
    regions = torch.arange(576, device="cuda").view(1, 24, 24) // 100 if has_regions else None
    found = []
    for constant in (0.0, 2.0**16):  # where single precision has steps of a 128th
        x = (small + constant).cuda().requires_grad_()
        p = layer(x, regions=regions)
        (p * g.cuda()).sum().backward()
        found.append((p.detach(), x.grad))
    (p, slopes), (far, others) = found
    torch.testing.assert_close(far, p, rtol=0, atol=1e-2)
    assert (slopes - others).norm() <= 0.1 * slopes.norm()


def test_losses_train_on_the_device():
    x, y = draw((2, 3, 12, 12)).cuda().requires_grad_(), torch.zeros(2, 12, 12).long()
    for criterion in (t.FieldLikelihoodLoss(0.5, learn=True), t.FieldHingeLoss(0.5, learn=True)):
        loss = criterion.cuda()(x, y.cuda())
        host = type(criterion)(0.5, learn=True)(x.detach().cpu(), y)
        torch.testing.assert_close(loss.cpu(), host, rtol=2e-3, atol=1e-3)
        loss.backward()
        assert torch.isfinite(criterion.raw_weight.grad).all()


def test_what_the_device_does_not_take_goes_to_the_host():
    x = draw((1, 3, 6, 6)).cuda()
    regions = torch.zeros(1, 6, 6, dtype=torch.int64, device="cuda")
    both = t.FieldMarginals(0.5, region_weight=0.3, method="trees")
    torch.testing.assert_close(both(x, regions=regions).cpu(), both(x.cpu(), regions=regions.cpu()))
    trees = t.FieldMarginals(0.5, method="trees", connectivity=8)
    torch.testing.assert_close(trees(x).cpu(), trees(x.cpu()))
    edges = torch.tensor([[0, 1], [1, 2], [0, 2]])
    layer = t.FieldMarginals(0.5)
    rows = x[0, :, 0, :3].T.contiguous()
    torch.testing.assert_close(layer(rows, edges=edges).cpu(), layer(rows.cpu(), edges=edges))
