"""
Train a network with the loss you are evaluated by
==================================================

The images show small bright discs in noise, and four pixels in a hundred belong to a disc.
Cross-entropy is a mean over pixels, so a network that is uncertain about the discs predicts none of
them. The Jaccard loss compares the discs that are found with those that are missed. Here the same
small network is trained on the same data, for the same number of steps, with three losses.
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
    masks = np.zeros((n, 1, 32, 32), bool)
    for mask in masks[:, 0]:
        for _ in range(rng.integers(1, 4)):
            r, c, radius = *rng.uniform(3, 29, 2), rng.uniform(1.5, 3.5)
            mask |= (rows - r) ** 2 + (columns - c) ** 2 < radius**2
    images = masks + 0.6 * rng.standard_normal(masks.shape)
    return torch.tensor(images, dtype=torch.float32), torch.tensor(masks)


train_x, train_y = draw(200, seed=0)
test_x, test_y = draw(200, seed=1)
print(f"{train_y.float().mean():.1%} of the pixels belong to a disc")

# %%
# All losses take logits and targets of any shape. ``per_image=True`` makes each image a set of its
# own, as in the measure. Dice is not submodular, so it has no Lovász hinge: ``DecomposedHingeLoss``
# is its convex surrogate.

cross_entropy = nn.BCEWithLogitsLoss()
criteria = {
    "cross-entropy": lambda x, y: cross_entropy(x, y.float()),
    "Lovász hinge, Jaccard": sw.torch.LovaszHingeLoss("jaccard", per_image=True),
    "B_D, Dice": sw.torch.DecomposedHingeLoss("dice", per_image=True),
}


def mean_measure(loss, logits, targets):
    predicted, truth = (t.flatten(1).numpy() for t in (logits > 0, targets))
    return 1 - np.mean(loss(truth, predicted))


curves, predictions = {}, {}
for name, criterion in criteria.items():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.Conv2d(8, 1, 5, padding=2))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    curve = []
    for step in range(151):
        if step % 10 == 0:
            with torch.no_grad():
                logits = net(test_x)
            curve.append(mean_measure(sw.losses.Jaccard(), logits, test_y))
        chosen = torch.arange(16) + 16 * (step % 12)
        optimizer.zero_grad()
        # All start with cross-entropy; B_D in particular needs a network that is roughly right.
        used = criteria["cross-entropy"] if step < 50 else criterion
        used(net(train_x[chosen]), train_y[chosen]).backward()
        optimizer.step()
    curves[name], predictions[name] = curve, logits > 0
    dice = mean_measure(sw.losses.Dice(), logits, test_y)
    print(f"{name}: test Jaccard {curve[-1]:.3f}, Dice {dice:.3f}")

# %%
# The Lovász hinge of the Jaccard loss is best in both measures, Jaccard and Dice. B_D is worse
# here: it is not an upper bound outside the unit cube. The order depends on the data. With a noise
# of 0.9 instead of 0.6, cross-entropy is better than both, because a hinge on a set does not
# estimate probabilities.

fig, axes = plt.subplots(
    1, 5, figsize=(13.0, 3.0), layout="constrained", width_ratios=[1.6, 1, 1, 1, 1]
)
for name, curve in curves.items():
    axes[0].plot(10 * np.arange(len(curve)), curve, linewidth=2, label=name)
axes[0].set(xlabel="step", ylabel="test Jaccard", ylim=(0, None))
axes[0].legend(frameon=False, fontsize="small")
shown = {"image": test_x[3, 0], "truth": test_y[3, 0]}
for name in ("cross-entropy", "Lovász hinge, Jaccard"):
    shown[name] = predictions[name][3, 0]
for ax, (name, picture) in zip(axes[1:], shown.items(), strict=True):
    ax.imshow(picture.numpy(), cmap="gray")
    ax.set_title(name, fontsize="medium")
    ax.set_axis_off()
