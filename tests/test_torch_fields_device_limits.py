"""What CUDA devices have room for, which can be said without one."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from setwise.torch._cuda import _field, _trees  # noqa: E402

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


def test_more_images_than_blocks_are_for_the_host(monkeypatch):
    small = SimpleNamespace(blocks=40)
    monkeypatch.setattr(_field, "kernel", lambda *arguments: small)
    monkeypatch.setattr(_field, "shared_memory", lambda device: 60_000)
    monkeypatch.setattr(_trees, "_programs", lambda *arguments: [small, small, small])
    logits, weights = torch.zeros(41, 2, 12), torch.zeros(41, 2, 12)
    assert _field.grid_bound(logits, weights, (3, 4), FOUR, 1e-3) is None
    assert _trees.tree_bound(logits, weights[:, 0], weights[:, 1], (3, 4), 1e-3) is None
