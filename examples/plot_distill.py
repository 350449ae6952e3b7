"""
Distil a network by its probabilities
=====================================

A large network knows where it is uncertain, and hard labels lose this information. A set loss for
soft labels lets a small network learn from the probabilities of a large one, on images without
labels: the Jaccard loss of soft labels is zero only if both agree. Here the teacher is trained on
120 labelled images. The student is trained on 6 of them, with or without the teacher's
probabilities on 120 other images.
"""

# %%
# The images are discs of unequal brightness with noise, so that some edges are ambiguous.

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

import setwise as sw

torch.set_num_threads(1)


def draw(n, seed):
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:32, :32]
    images, masks = np.zeros((n, 1, 32, 32)), np.zeros((n, 1, 32, 32), bool)
    for image, mask in zip(images[:, 0], masks[:, 0], strict=True):
        for _ in range(rng.integers(1, 4)):
            r, c, radius = *rng.uniform(5, 27, 2), rng.uniform(2.5, 5)
            disc = (rows - r) ** 2 + (columns - c) ** 2 < radius**2
            mask |= disc
            image[disc] = rng.uniform(0.5, 1.5)
    images += 0.7 * rng.standard_normal(images.shape)
    return torch.tensor(images, dtype=torch.float32), torch.tensor(masks)


def network(width):
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, width, 5, padding=2), nn.ReLU()]
    layers += [nn.Conv2d(width, width, 5, padding=2), nn.ReLU(), nn.Conv2d(width, 1, 5, padding=2)]
    return nn.Sequential(*layers)


def train(net, criterion, x, y, steps):
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        chosen = torch.randint(len(x), (12,), generator=generator)
        optimizer.zero_grad()
        criterion(net(x[chosen]), y[chosen]).backward()
        optimizer.step()
    return net


train_x, train_y = draw(120, seed=0)
unlabelled_x, _ = draw(120, seed=1)
test_x, test_y = draw(120, seed=2)

# %%
# The teacher is trained with cross-entropy, so that its probabilities are roughly calibrated.


def cross_entropy(logits, y):
    return nn.functional.binary_cross_entropy_with_logits(logits, y.float())


teacher = train(network(12), cross_entropy, train_x, train_y, 200)
with torch.no_grad():
    soft = torch.sigmoid(teacher(unlabelled_x))

# %%
# The student is trained on 6 labelled images alone, or also on the teacher's probabilities for 120
# other images. A float target in the shape of the logits is a soft label; 0 and 1 are hard labels.

few_x, few_y = train_x[:6], train_y[:6].float()
both_x, both_y = torch.cat([few_x, unlabelled_x]), torch.cat([few_y, soft])
jaccard = sw.torch.LovaszSigmoidLoss("jaccard", per_image=True)
metric = sw.torch.JaccardMetricLoss(activation="sigmoid", classes="all", per_image=True)
students = {
    "6 labels, metric": (metric, few_x, few_y),
    "teacher's probabilities, Lovász": (jaccard, both_x, both_y),
    "teacher's probabilities, metric": (metric, both_x, both_y),
}
score = sw.torch.SetScore("jaccard", n_classes=1, kind="masks", per_image=True)
scores, answers = {}, {}
with torch.no_grad():
    scores["teacher"] = score(teacher(test_x), test_y).item()
for name, (criterion, x, y) in students.items():
    student = train(network(4), criterion, x, y, 150)
    with torch.no_grad():
        answers[name] = student(test_x)
    scores[name] = score(answers[name], test_y).item()
for name, value in scores.items():
    print(f"{name:34s} {value:.3f}")

# %%
# The figure shows one test image with the predictions of a student that was trained without the
# teacher and of one that was trained with it.

shown = ["6 labels, metric", "teacher's probabilities, metric"]
figure, axes = plt.subplots(1, 4, figsize=(10.5, 3), layout="constrained")
axes[0].imshow(test_x[3, 0].numpy(), cmap="gray")
axes[0].set_title("image")
axes[1].imshow(test_y[3, 0].numpy(), cmap="gray")
axes[1].set_title("truth")
for axis, name in zip(axes[2:], shown, strict=True):
    axis.imshow(torch.sigmoid(answers[name][3, 0]).numpy(), cmap="magma", vmin=0, vmax=1)
    axis.set_title(f"{name}\nmean Jaccard {scores[name]:.2f}", fontsize=9)
for axis in axes:
    axis.set_axis_off()
plt.show()
