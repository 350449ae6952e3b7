"""
One loss over the batches of all processes
==========================================

Under ``DistributedDataParallel`` every process has its own part of the batch, and a set loss is not
the mean of the set losses of the parts: the Jaccard index of a batch is not the mean of the indices
of its halves. With ``across_ranks=True`` logits and targets are gathered and every process computes
the loss of the whole batch. The gradient is the one that a single process would compute.
"""

# %%
# Two processes on this machine use the backend ``gloo``. Each has a part of the batch, of different
# sizes, and takes one step. The network must then equal that of one process with all of the data.

import gc
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import setwise as sw


def data():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(10, 3, 16, 16, generator=generator)
    y = x.mean(1, keepdim=True) + 0.3 * torch.randn(10, 1, 16, 16, generator=generator) > 0.2
    return x, y


def network():
    torch.manual_seed(1)
    return nn.Conv2d(3, 1, 3, padding=1)


def one_step(net, criterion, x, y):
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
    loss = criterion(net(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def work(rank, world, folder):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=world
    )
    x, y = data()
    part = slice(0, 6) if rank == 0 else slice(6, 10)
    criterion = sw.torch.LovaszHingeLoss("jaccard", across_ranks=True)
    net = DistributedDataParallel(network())
    loss = one_step(net, criterion, x[part], y[part])
    if rank == 0:
        torch.save((loss, net.module.state_dict()), os.path.join(folder, "answer.pt"))
    dist.barrier()  # no process leaves while another still communicates
    del net
    gc.collect()  # the wrapper is in a reference cycle and keeps the group alive
    dist.destroy_process_group()


# %%
# Each spawned process imports this file, so the code that starts them is guarded. The answers agree
# to rounding.

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, args=(2, folder), nprocs=2)
        loss, weights = torch.load(os.path.join(folder, "answer.pt"))
    alone = network()
    expected = one_step(alone, sw.torch.LovaszHingeLoss("jaccard"), *data())
    print(f"two processes {loss:.6f}, one process {expected:.6f}")
    assert abs(loss - expected) < 1e-6
    for name, weight in alone.state_dict().items():
        torch.testing.assert_close(weights[name], weight, rtol=1e-5, atol=1e-7)
