r"""
Choose the set of least expected loss
=====================================

A model gives the probability of each element to be in the set, but the answer must be a set. The
best set depends on the loss: a threshold of 1/2 is optimal for the Hamming loss, and measures of
overlap favour larger sets. :func:`setwise.decide` finds the set of least expected loss
and proves that it is optimal.
"""

# %%
# Forty elements
# --------------
#
# The elements are independent and sorted by their probabilities. For each loss the best set
# consists of the first k elements, and ``sw.decide`` determines k. For comparison, the expected
# loss of every k is estimated from 4000 sampled truths.

import matplotlib.pyplot as plt
import numpy as np
from skimage import data, filters, transform
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier

import setwise as sw

rng = np.random.default_rng(8)
p = np.sort(rng.beta(0.7, 1.6, 40))[::-1]
losses = {
    "Hamming": "hamming",
    "Jaccard": "jaccard",
    "Dice": "dice",
    "F2": sw.losses.FBeta(2.0),
}
best = {name: sw.decide(p, loss) for name, loss in losses.items()}
for name, answer in best.items():
    print(f"{name}: the first {answer.mask.sum()}, {answer.method}, exact: {answer.exact}")

truths = rng.random((4000, p.size)) < p
hits = np.cumsum(truths, axis=1)
k, size = np.arange(1, p.size + 1), truths.sum(axis=1, keepdims=True)
expected = {
    "Hamming": ((k + size - 2 * hits) / p.size).mean(axis=0),
    "Jaccard": 1 - (hits / (k + size - hits)).mean(axis=0),
    "Dice": 1 - (2 * hits / (k + size)).mean(axis=0),
    "F2": 1 - (5 * hits / (k + 4 * size)).mean(axis=0),
}

# %%
# A mask
# ------
#
# The shape of a small horse is blurred, so pixels near its outline and all along its legs are
# uncertain. Masks are drawn from these probabilities, and two answers are scored on them.

horse = transform.resize(1.0 - data.horse(), (82, 100), anti_aliasing=True)
soft = 0.02 + 0.7 * filters.gaussian(horse, 4.0)
half = soft > 0.5
dice = sw.decide(soft, "dice", sets="cells")
draws = rng.random((200, *soft.shape)) < soft


def index(mask):
    """Return the Dice index of a mask with each of the draws."""
    return 2 * (draws & mask).sum(axis=(1, 2)) / (draws.sum(axis=(1, 2)) + mask.sum())


print(
    f"expected by sw.decide: {1 - dice.expected:.4f}, over the draws {index(dice.mask).mean():.4f}"
)
print(
    f"above 1/2: {index(half).mean():.4f}; better in {np.mean(index(dice.mask) > index(half)):.0%}"
)

# %%
# A classifier
# ------------
#
# ``SetDecision`` adds the decision to any classifier with probabilities. Both are scored by the
# mean Jaccard index of the rows.

X, Y = make_multilabel_classification(
    n_samples=600, n_classes=10, n_labels=3, length=20, random_state=0
)
plain = OneVsRestClassifier(LogisticRegression(max_iter=1000))
judge = sw.losses.scorer("jaccard")
scores = {
    "above 1/2": cross_val_score(plain, X, Y, scoring=judge),
    "SetDecision": cross_val_score(sw.SetDecision(plain, "jaccard"), X, Y, scoring=judge),
}
for name, folds in scores.items():
    print(f"{name}: Jaccard index {folds.mean():.3f}")

# %%
# The picture
# -----------
#
# The left column shows the best sets, and the expected losses with their best k. The right column
# shows the mask of probabilities above 1/2 (dark) with the pixels that the Dice loss adds (orange),
# and the scores of the classifiers, with one line per fold.

hues = dict(zip(losses, ("#666666", "#d95f02", "#7570b3", "#1b9e77"), strict=True))
plt.rcParams["font.size"] = 13
figure, axes = plt.subplots(2, 2, figsize=(10.5, 8), layout="constrained", width_ratios=(1.25, 1))
(bars, mask), (curves, folds) = axes
bars.bar(k, p, color="#d0d0d0", width=0.8)
bars.axhline(0.5, color="k", lw=1, ls=":")
for row, (name, answer) in enumerate(best.items()):
    count, height = int(answer.mask.sum()), -0.1 - 0.11 * row
    bars.plot([0.6, count + 0.4], [height, height], color=hues[name], lw=9, solid_capstyle="butt")
    bars.text(count + 1.5, height, name, color=hues[name], va="center")
    curves.plot(k, expected[name], color=hues[name], lw=2.5)
    unit = p.size if name == "Hamming" else 1  # this loss counts elements
    curves.plot(count, answer.expected / unit, "o", color=hues[name], ms=11, mec="w", mew=1.5)
bars.set(title="the best set for each loss", ylabel="probability", yticks=(0, 0.5, 1))
bars.set(xlim=(0, 47), ylim=(-0.5, 1.02))
curves.set(xlim=(0, 47), ylim=(0, 1), xlabel="k", title="expected loss of the first k")
for axis in (bars, curves, folds):
    axis.spines[["top", "right"]].set_visible(False)

mask.imshow(soft, cmap="gray_r", vmin=0, vmax=1.3)
paint = np.zeros((*soft.shape, 4))
paint[dice.mask] = (0.851, 0.373, 0.008, 0.75)
paint[half] = (0.15, 0.15, 0.3, 0.9)
mask.imshow(paint, interpolation="nearest")
mask.set_title(f"mean Dice index\nabove 1/2: {index(half).mean():.2f}")
mask.text(
    0.5, 0.0, f"with sw.decide: {index(dice.mask).mean():.2f}", color="#d95f02",
    ha="center", va="top", transform=mask.transAxes,
)  # fmt: skip
mask.set_axis_off()

table = np.array(list(scores.values()))
folds.plot([0, 1], table, color="#bbbbbb", lw=1.5)
folds.plot([0, 1], table.mean(axis=1), "o-", color="#d95f02", lw=3, ms=11)
folds.set(xlim=(-0.3, 1.3), xticks=(0, 1), title="Jaccard index of a classifier")
folds.set_xticklabels(scores)
plt.show()
