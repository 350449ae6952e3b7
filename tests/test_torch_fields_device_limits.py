"""What CUDA devices have room for, which can be said without one."""

import struct
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from setwise.torch._cuda import _field, _hinge, _trees  # noqa: E402

FOUR = ((0, 1), (1, 0))


@pytest.mark.parametrize("bytes_of_multiprocessor", [65536, 102400, 167936, 233472])
@pytest.mark.parametrize("labels", [2, 3, 7, 8, 9, 21, 32])
def test_the_tiles_of_all_blocks_fit_at_once(bytes_of_multiprocessor, labels):
    room = bytes_of_multiprocessor - 1024 - 4096  # as `shared_memory` has it
    (threads, blocks), shared = _field._tile(labels, room)
    assert blocks >= 1
    assert threads >= 128  # a warp for each sum
    assert threads * blocks <= 1024
    assert blocks * (shared + 2048) <= bytes_of_multiprocessor


@pytest.mark.parametrize("blocks", [1, 40, 396])
@pytest.mark.parametrize("tiles", [0, 1, 25, 192, 410, 6000])
def test_teams_keep_all_blocks_at_work(blocks, tiles):
    for batch in (1, 2, 8, 64):
        teams = _field._teams(batch, tiles, blocks)
        assert 1 <= teams <= min(batch, blocks)
        if tiles:
            rounds = [
                -(-batch // k) * -(-tiles // (blocks // k))
                for k in range(1, min(batch, blocks) + 1)
            ]
            assert teams == rounds.index(min(rounds)) + 1
    assert _field._teams(8, 192, 396) == 2  # photographs of 213 x 320 pixels on an H200


def test_more_images_than_blocks_are_for_the_host(monkeypatch):
    small = SimpleNamespace(blocks=40)
    monkeypatch.setattr(_trees, "_programs", lambda *arguments: [small, small, small])
    logits, weights = torch.zeros(41, 2, 12), torch.zeros(41, 2, 12)
    assert _trees.tree_bound(logits, weights[:, 0], weights[:, 1], (3, 4), 1e-3) is None


def test_any_number_of_passes_is_one_that_barriers_can_count(monkeypatch):
    handed = []
    program = SimpleNamespace(blocks=640, launch=lambda arguments, *_: handed.append(arguments))
    monkeypatch.setattr(_field, "kernel", lambda *arguments: program)
    monkeypatch.setattr(_field, "shared_memory", lambda device: 60_000)
    monkeypatch.setattr(_field, "workspaces", lambda *_: (torch.zeros(1), torch.zeros(1)))
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 0, raising=False)
    logits, weights = torch.zeros(1, 2, 12), torch.zeros(1, 2, 12)
    _field._plan.cache_clear()
    for limit in (None, 7, 2**40):
        _field.grid_bound(logits, weights, (3, 4), FOUR, 1e-3, limit)
    _field._plan.cache_clear()
    told = [struct.unpack_from("<12Qdqiii", arguments)[-1] for arguments in handed]
    assert told[:2] == [2000, 7]
    rounds = 2 * 13 + 4  # of a sweep over thirteen directions
    assert told[2] * rounds * program.blocks < 2**32


@pytest.mark.parametrize("most", [1, 14, 20, 31, 32, 46, 132])
def test_no_more_blocks_share_the_tiles_than_can_run_at_once(most):
    shares = [_hinge._blocks(tiles, most) for tiles in range(1, 4 * most)]
    assert all(1 <= blocks <= most for blocks in shares)
    assert all(blocks == most or blocks % 32 == 0 for blocks in shares)
    assert _hinge._blocks(245, 132) == 96  # a million scores on an H200
