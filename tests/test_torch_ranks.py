"""Processes in a group: scores and losses of the batch of two, and a layer that they train."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import setwise as sw  # noqa: E402

t = sw.torch

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(),
    reason="torch has no gloo",
)

SCORES = [
    {},
    {"per_image": True},
    {"per_image": True, "average": "classes", "worst": 0.5},
    {"reduction": "none"},
    {"kind": "masks", "per_image": True},
]

# Rank 0 has five images in two batches, rank 1 two in one; in the end rank 1 has none at all.
# Nobody but torch may hold the group: one that outlives its end keeps its threads, and a thread
# that releases a tensor while the interpreter exits aborts the process.
RANK = """
import sys
import weakref
import torch
import setwise as sw

t, (rank, folder) = sw.torch, (int(sys.argv[1]), sys.argv[2])
torch.distributed.init_process_group(
    "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2
)
x, y = torch.load(f"{folder}/batch.pt", weights_only=True)
parts = [[slice(0, 2), slice(2, 5)], [slice(5, 7)]][rank]
found = []
for options in SCORES:
    score = t.SetScore("dice", n_classes=3, ignore_index=255, **options)
    truth = torch.stack([y == c for c in range(3)], 1) if "kind" in options else y
    for part in parts:
        score.update(x[part], truth[part])
    found.append(score.compute())
score = t.SetScore(n_classes=3, ignore_index=255)
if rank == 0:
    score.update(x, y)
found.append(score.compute())
own = slice(0, 5) if rank == 0 else slice(5, 7)
for criterion in (t.LovaszSoftmaxLoss, t.SoftDiceLoss):
    leaf = x[own].clone().requires_grad_()
    value = criterion(ignore_index=255, across_ranks=True)(leaf, y[own])
    value.backward()
    found += [value.detach(), leaf.grad]
torch.save(found, f"{folder}/found{rank}.pt")
torch.distributed.barrier()  # nobody leaves while another still talks to it
group = weakref.ref(torch.distributed.group.WORLD)
torch.distributed.destroy_process_group()
assert group() is None, "something holds the group"
""".replace("SCORES", repr(SCORES))


def run_ranks(script, folder):
    """Two processes of one group, to their end."""
    ranks = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(folder)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    errors = [rank.communicate(timeout=300)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], errors


def test_ranks_count_together(tmp_path):
    """Both ranks report what one process does of the whole, and send back its gradient."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(7, 3, 5, 4, generator=generator)
    y = torch.randint(0, 3, (7, 5, 4), generator=generator)
    y[torch.rand(7, 5, 4, generator=generator) < 0.1] = 255
    torch.save((x, y), tmp_path / "batch.pt")
    script = tmp_path / "rank.py"
    script.write_text(RANK, "utf-8")
    run_ranks(script, tmp_path)
    found = [torch.load(tmp_path / f"found{rank}.pt", weights_only=True) for rank in range(2)]

    expected = []
    for options in SCORES:
        truth = torch.stack([y == c for c in range(3)], 1) if "kind" in options else y
        expected.append(t.SetScore("dice", n_classes=3, ignore_index=255, **options)(x, truth))
    expected.append(t.SetScore(n_classes=3, ignore_index=255)(x, y))
    for ours in found:
        for a, b in zip(ours[: len(expected)], expected, strict=True):
            assert torch.equal(a, b)
    for k, criterion in enumerate((t.LovaszSoftmaxLoss, t.SoftDiceLoss)):
        leaf = x.clone().requires_grad_()
        value = criterion(ignore_index=255)(leaf, y)
        value.backward()
        at = len(expected) + 2 * k
        for ours in found:
            torch.testing.assert_close(ours[at], value.detach())
        # The mean over two ranks that DistributedDataParallel takes is the gradient of the whole.
        joined = torch.cat([ours[at + 1] for ours in found]) / 2
        torch.testing.assert_close(joined, leaf.grad)


# The group is left to the end of the process: where it ends inside, its threads may wait for the
# interpreter's lock while their end is waited for by one that holds it.
LAYER = """
import os
import sys
import torch
import setwise as sw

rank, folder = int(sys.argv[1]), sys.argv[2]
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 1), sw.torch.FieldMarginals(0.5, learn=True))
x = torch.randn(3, 1, 4, 4)
net(x).square().sum().backward()
alone = [parameter.grad.clone() for parameter in net.parameters()]
net.zero_grad()
torch.distributed.init_process_group(
    "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2
)
both = torch.nn.parallel.DistributedDataParallel(net)  # which reduces while it is there
both(x[rank:3:2]).square().sum().backward()
found = [parameter.grad for parameter in net.parameters()]
torch.save((alone, found), f"{folder}/found{rank}.pt")
torch.distributed.barrier()
os._exit(0)
"""


def test_a_layer_trains_under_distributed_data_parallel(tmp_path):
    script = tmp_path / "layer.py"
    script.write_text(LAYER, "utf-8")
    run_ranks(script, tmp_path)
    for rank in range(2):
        alone, found = torch.load(tmp_path / f"found{rank}.pt", weights_only=True)
        assert len(found) == 3
        for expected, slope in zip(alone, found, strict=True):
            assert slope.abs().max() > 0
            torch.testing.assert_close(slope, expected / 2)  # the mean over ranks
