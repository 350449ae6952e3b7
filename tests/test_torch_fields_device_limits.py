"""What CUDA devices have room for, which can be said without one."""

import math
import struct
from fractions import Fraction
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from setwise.torch._cuda import _hinge  # noqa: E402
from setwise.torch._cuda._fields import _grid, _trees  # noqa: E402
from setwise.torch._fields import _device_solver  # noqa: E402
from setwise.torch._fields._graph import grid_graph  # noqa: E402
from setwise.torch._fields._problem import FieldProblem, levelled  # noqa: E402

FOUR = ((0, 1), (1, 0))


@pytest.mark.parametrize("bytes_of_multiprocessor", [65536, 102400, 167936, 233472])
@pytest.mark.parametrize("labels", [2, 3, 7, 8, 9, 21, 32])
def test_the_tiles_of_all_blocks_fit_at_once(bytes_of_multiprocessor, labels):
    room = bytes_of_multiprocessor - 1024 - 4096  # as `shared_memory` has it
    (threads, blocks), shared = _grid._tile(labels, room)
    assert blocks >= 1
    assert threads >= 128  # a warp for each sum
    assert threads * blocks <= 1024
    assert blocks * (shared + 2048) <= bytes_of_multiprocessor


@pytest.mark.parametrize("blocks", [1, 40, 396])
@pytest.mark.parametrize("tiles", [0, 1, 25, 192, 410, 6000])
def test_teams_keep_all_blocks_at_work(blocks, tiles):
    for batch in (1, 2, 8, 64):
        teams = _grid._teams(batch, tiles, blocks)
        assert 1 <= teams <= min(batch, blocks)
        if tiles:
            rounds = [
                -(-batch // k) * -(-tiles // (blocks // k))
                for k in range(1, min(batch, blocks) + 1)
            ]
            assert teams == rounds.index(min(rounds)) + 1
    assert _grid._teams(8, 192, 396) == 2  # photographs of 213 x 320 pixels on an H200


def test_more_images_than_blocks_are_for_the_host(monkeypatch):
    small = SimpleNamespace(blocks=40)
    monkeypatch.setattr(_trees, "_programs", lambda *arguments: [small, small, small])
    logits, weights = torch.zeros(41, 2, 12), torch.zeros(41, 2, 12)
    assert _trees.tree_bound(logits, weights[:, 0], weights[:, 1], (3, 4), 1e-3) is None


def test_any_number_of_passes_is_one_that_barriers_can_count(monkeypatch):
    handed = []
    program = SimpleNamespace(blocks=640, launch=lambda arguments, *_: handed.append(arguments))
    monkeypatch.setattr(_grid, "kernel", lambda *arguments: program)
    monkeypatch.setattr(_grid, "shared_memory", lambda device: 60_000)
    monkeypatch.setattr(_grid, "workspaces", lambda *_: (torch.zeros(1), torch.zeros(1)))
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 0, raising=False)
    logits, weights = torch.zeros(1, 2, 12), torch.zeros(1, 2, 12)
    _grid._plan.cache_clear()
    for limit in (None, 7, 2**40):
        _grid.grid_bound(logits, weights, (3, 4), FOUR, 1e-3, limit)
    _grid._plan.cache_clear()
    passed = [struct.unpack_from("<13Qdqiii", arguments)[-1] for arguments in handed]
    assert passed[:2] == [2000, 7]
    rounds = 2 * 13 + 4  # of a sweep over thirteen directions
    assert passed[2] * rounds * program.blocks < 2**32


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("constant", [0.0, 300.0, -(2.0**16), 1e6])
def test_regions_see_no_large_constant(monkeypatch, dtype, constant):
    """They are in single precision there; the bound is told of the constant all the same."""
    seen = []

    def bound(theta, *_):
        seen.append(theta)
        upper = theta.double().logsumexp(1).sum(1)
        return SimpleNamespace(p=theta.softmax(1), upper=upper, gap=upper * 0, state=None)

    monkeypatch.setattr(_device_solver, "region_bound", bound)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: None)
    small = (16 * torch.randn(2, 3, 12, generator=torch.Generator().manual_seed(0))).round() / 16
    logits = small.to(dtype) + constant
    logits[0, 1, 3] = -math.inf
    logits[1, 2] = 13 / 128  # far below the best, where couplings may lead
    graph, regions = grid_graph((3, 4), None), torch.zeros(2, 1, 12, dtype=torch.int64)
    problem = FieldProblem(graph, regions, 1, (0.8,), "projection", 1e-3, None, 1e-6)
    found = _device_solver.solve(problem, logits, torch.zeros(2, 2, 12), torch.zeros(2, 1, 1))
    (theta,) = seen
    assert theta.dtype == torch.float64
    assert theta.amax(1).abs().max() < 64
    moved = (logits.double() - theta)[torch.isfinite(logits)]
    assert (moved % 64 == 0).all()
    exact = logits.double().logsumexp(1).sum(1)
    torch.testing.assert_close(found.upper, exact, rtol=1e-12, atol=1e-12)
    if constant == 0.0:
        assert torch.equal(theta, logits.double())


@pytest.mark.parametrize("gap", [math.nan, math.inf])
def test_a_gap_that_is_no_number_asks_for_more_passes(gap):
    assert _trees._passes_to_go(3, gap, None, 1e-3) == 6


@pytest.mark.parametrize("most", [1, 14, 20, 31, 32, 46, 132])
def test_no_more_blocks_share_the_tiles_than_can_run_at_once(most):
    shares = [_hinge._blocks(tiles, most) for tiles in range(1, 4 * most)]
    assert all(1 <= blocks <= most for blocks in shares)
    assert all(blocks == most or blocks % 32 == 0 for blocks in shares)
    assert _hinge._blocks(245, 132) == 96  # a million scores on an H200


def test_a_level_of_the_logits_is_taken_out_and_put_back():
    """The sum is exact, and no bound is below the one with the level added back."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 3, 50, generator=generator)
    levels = torch.tensor([0.0, 1e3, -1e6, 3e9]).repeat(2, 25)[:, None, :50]
    near = levelled(logits + levels)
    assert torch.equal(near.logits + (logits + levels - near.logits), (logits + levels).double())
    assert near.logits[..., levels[0, 0].abs() < 1e9].abs().amax() <= 68.0
    taken = (logits + levels).double() - near.logits
    assert torch.equal(taken, taken[:, :1].expand_as(taken))
    bound = torch.logsumexp(near.logits, 1).sum(1)
    exact = [
        sum(map(Fraction, [float(b), *map(float, row)]))
        for b, row in zip(bound, taken[:, 0], strict=True)
    ]
    assert all(Fraction(float(u)) >= x for u, x in zip(near.above(bound), exact, strict=True))
    plain = levelled(logits)
    assert not plain.constant.any()
    assert torch.equal(plain.above(bound), bound)
