"""
A random field as the last layer of a network
=============================================

The images show discs in noise. The receptive field of the network, three by three pixels, is too
small to distinguish a disc from noise. A random field over the pixels combines the scores of
neighbours. Network and field are trained together by the likelihood of the labels. The solver
proves an upper bound on its log Z.
"""

# %%
# The images have 32 x 32 pixels and one to three discs.

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

import setwise as sw

torch.set_num_threads(1)


def draw(n, seed):
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:32, :32]
    masks = np.zeros((n, 32, 32), bool)
    for mask in masks:
        for _ in range(rng.integers(1, 4)):
            r, c, radius = *rng.uniform(5, 27, 2), rng.uniform(4.0, 7.0)
            mask |= (rows - r) ** 2 + (columns - c) ** 2 < radius**2
    images = masks + 1.2 * rng.standard_normal(masks.shape)
    return torch.tensor(images[:, None], dtype=torch.float32), torch.tensor(masks).long()


train_x, train_y = draw(40, seed=0)
test_x, test_y = draw(20, seed=1)

# %%
# The same network is trained once with cross-entropy and once with the likelihood of a field, whose
# weight of the pairs is learnt too. With a weight of 0 the two losses are equal.


def train(criterion):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 1))
    parameters = [*net.parameters(), *criterion.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-2)
    for step in range(60):
        chosen = torch.arange(8) + 8 * (step % 5)
        optimizer.zero_grad()
        criterion(net(train_x[chosen]), train_y[chosen]).backward()
        optimizer.step()
    return net


likelihood = sw.torch.FieldLikelihoodLoss(weight=0.3, learn=True)
alone, beside = train(nn.CrossEntropyLoss()), train(likelihood)
weight = likelihood.weight.item()
print(f"learnt weight of pairs: {weight:.2f}")

# %%
# The marginals of the field are probabilities. The layer also returns an interval that contains log
# Z.

field = sw.torch.FieldMarginals(weight, bounds=True)
with torch.no_grad():
    plain = alone(test_x).softmax(1)
    post = field(beside(test_x))
for name, p in (("cross-entropy", plain), ("field", post.probabilities)):
    found, truth = (p[:, 1] > 0.5).flatten(1).numpy(), test_y.flatten(1).numpy()
    score = 1 - np.mean(sw.losses.Jaccard()(truth, found))
    print(f"{name}: test Jaccard {score:.3f}")
width = (post.log_partition_upper - post.log_partition_lower).mean()
print(f"log Z lies in an interval of {width:.1f} nats, {width / 1024:.3f} per pixel")

# %%
# The figure shows the probabilities of the network alone, and those of the network with the field.

fig, axes = plt.subplots(1, 4, figsize=(11.0, 3.0), layout="constrained")
shown = {
    "image": test_x[2, 0],
    "truth": test_y[2],
    "network, cross-entropy": plain[2, 1],
    "network and field": post.probabilities[2, 1],
}
for ax, (name, picture) in zip(axes, shown.items(), strict=True):
    ax.imshow(picture.numpy(), cmap="gray", vmin=None if name == "image" else 0)
    ax.set_title(name, fontsize="medium")
    ax.set_axis_off()
