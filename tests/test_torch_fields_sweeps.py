"""Sweeps over grids of four neighbours, written plainly, beside the compiled solver and a GPU's."""

from itertools import pairwise

import pytest

torch = pytest.importorskip("torch")

import setwise as sw  # noqa: E402

RIGHT, DOWN = 2, 1  # axes of (L, H, W)


def draw(*shape, seed=0):
    return 2 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


def ends(x, axis):
    """Of every edge along an axis: its two ends, as views."""
    size = x.shape[axis]
    return x.narrow(axis, 0, size - 1), x.narrow(axis, 1, size - 1)


def scores(theta, flows):
    a = theta.clone()
    for axis, f in flows.items():
        first, second = ends(a, axis)
        first -= f
        second += f
    return a


def relax(a, flows, halves, axis, odd):
    """Edges from even or odd places: the best flows of a majorant, then one step of Newton's.

    Of two labels the best flows, whose sum is 0.
    """
    step = [slice(None)] * 3
    step[axis] = slice(odd, None, 2)
    x, y = (end[tuple(step)] for end in ends(a, axis))
    f, half = flows[axis][tuple(step)], halves[axis][tuple(step)]
    if len(a) == 2:
        best = f.diff(dim=0) + (x.diff(dim=0) - y.diff(dim=0)) / 2
        one = best.clamp(-2 * half, 2 * half) / 2
        d = torch.cat((-one, one)) - f
    else:
        of_x, of_y = x.logsumexp(0), y.logsumexp(0)
        c = of_x - of_y
        best = f + (x - y - c) / 2
        d = best.clamp(-half, half) - f
        mass_x, mass_y, free = (x - d - of_x).exp(), (y + d - of_y).exp(), best.abs() < half
        sum_x, sum_y = mass_x.sum(0), mass_y.sum(0)
        slope = 1 - ((mass_x * free).sum(0) / sum_x + (mass_y * free).sum(0) / sum_y) / 2
        c = c + (sum_x.log() - sum_y.log()) / slope.clamp(min=0.15)
        d = (f + (x - y - c) / 2).clamp(-half, half) - f
    f += d
    x -= d
    y += d


def sweeps(theta, halves, number):
    """Bound and gap after some sweeps with momentum, and the bounds at their starts."""
    flows = {axis: torch.zeros_like(ends(theta, axis)[0]) for axis in (RIGHT, DOWN)}
    momentum = {axis: torch.zeros_like(f) for axis, f in flows.items()}
    starts = []
    for k in range(number):
        start = {axis: f + momentum[axis] for axis, f in flows.items()}
        a = scores(theta, start)
        starts.append(a.logsumexp(0).sum())
        flows = {axis: y.clone() for axis, y in start.items()}
        for axis in (RIGHT, DOWN):
            for odd in (0, 1):
                relax(a, flows, halves, axis, odd)
        beta, push = k / (k + 6), 0.45
        momentum = {
            axis: (f + (beta + push) * (f - start[axis]) + beta * momentum[axis]).clamp(
                -halves[axis], halves[axis]
            )
            - f
            for axis, f in flows.items()
        }
    a = scores(theta, flows)
    p, gap = a.softmax(0), 0.0
    for axis, f in flows.items():
        first, second = ends(p, axis)
        gap = gap + (halves[axis] * (first - second).abs() - f * (first - second)).sum()
    return a.logsumexp(0).sum(), gap, starts


def field(n_labels, height, width):
    """Logits (1, L, H, W), weights (1, 2, H, W), and half of those of each direction's edges."""
    theta, weights = draw(1, n_labels, height, width), draw(1, 2, height, width, seed=1).abs() / 2
    of_edges = {axis: weights[:, k] for k, axis in enumerate((RIGHT, DOWN))}
    return theta, weights, {axis: ends(w, axis)[0] / 2 for axis, w in of_edges.items()}


@pytest.mark.parametrize("n_labels", [2, 5])
def test_sweeps_reach_the_least_bound(n_labels):
    theta, weights, halves = field(n_labels, 9, 11)
    upper, gap, _ = sweeps(theta[0], halves, 60)
    layer = sw.torch.FieldMarginals(1.0, bounds=True, tol=1e-9)
    exact = layer(theta, weights=weights)
    assert 0 <= gap <= 1e-3 * upper.abs()
    assert upper >= (exact.log_partition_upper - exact.gap).item() - 1e-9
    assert upper - gap <= exact.log_partition_upper.item() + 1e-9


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("n_labels", [2, 3, 5, 21])
@pytest.mark.parametrize("sides", [(9, 11), (40, 61)], ids=str)
def test_sweep_by_sweep_the_device_does_the_same(n_labels, sides):
    from setwise.torch._cuda._fields._grid import grid_bound

    theta, weights, halves = field(n_labels, *sides)
    on_device = (theta.flatten(2).float().cuda(), weights.flatten(2).float().cuda())
    for k in (1, 3, 5):
        upper, gap, starts = sweeps(theta[0], halves, k)
        assert all(after < before for before, after in pairwise(starts))
        found = grid_bound(*on_device, sides, ((0, 1), (1, 0)), 0.0, k, first_check=k)
        assert found.record.tolist() == [[k, 1]]
        assert found.upper.item() == pytest.approx(upper.item(), rel=1e-5)
        assert found.gap.item() == pytest.approx(gap.item(), rel=0.02, abs=1e-3)
