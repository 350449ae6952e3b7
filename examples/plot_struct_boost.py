r"""
Boosting with a taxonomy
========================

Some mistakes are worse than others: who takes a fox for a dog is nearer to the truth than who takes
it for a bus. A taxonomy says so. Here are eight classes in the plane, in three families, and two
boosters of decision stumps: one that counts mistakes, and one that is told the tree and counts how
far up in it the first common ancestor lies.
"""

# %%
# The data
# --------
#
# The classes of a family lie close together and overlap; the families overlap too, but less.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

import setwise as sw

FAMILIES = [[0, 1, 2], [3, 4], [5, 6, 7]]
CENTERS = np.array(
    [[0, 0], [1.2, 0.4], [0.3, 1.3], [4, 0.2], [4.6, 1.4], [1.6, 4], [2.8, 4.3], [2.2, 3.0]]
)


def draw(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(len(CENTERS), size=n)
    return CENTERS[y] + 0.75 * rng.standard_normal((n, 2)), y


X, y = draw(600, 0)
X_test, y_test = draw(4000, 1)

# %%
# Two boosters
# ------------
#
# Nested lists are the taxonomy. The code of a class marks the class and its family, so that a
# learner may speak for a whole family; a mistake within a family costs 1, another one 2. With half
# of C for the costs that are twice as high, both objectives begin at the same height. A callback
# ends both fits at 120 stumps, well before their optimum (``n_estimators`` would do it with a
# warning).


def enough(progress):
    return progress.n_columns >= 120


flat = sw.StructBoostClassifier(C=200.0, callback=enough).fit(X, y)
tree = sw.StructBoostClassifier(C=100.0, taxonomy=FAMILIES, callback=enough).fit(X, y)
print(tree.code_.astype(int))
print(f"relative gaps: flat {flat.gap_:.1e}, taxonomy {tree.gap_:.1e}")

# %%
# The certificate
# ---------------
#
# Each round adds one stump and solves the problem over all stumps so far anew: the objective never
# rises. The multipliers of the round before give a bound for all stumps there are, so that it is
# known when no more of them are needed.

colors = ["#0072B2", "#56B4E9", "#003B5C", "#D55E00", "#F2A065", "#009E73", "#7FD1B9", "#004D38"]
fig, (left, middle, right) = plt.subplots(1, 3, figsize=(12.5, 4), layout="constrained")
grid = np.stack(np.meshgrid(np.linspace(-2, 7, 300), np.linspace(-2, 6.5, 300)), axis=-1)
regions = tree.predict(grid.reshape(-1, 2)).reshape(300, 300)
left.pcolormesh(
    grid[..., 0],
    grid[..., 1],
    regions,
    cmap=ListedColormap(colors),
    vmin=-0.5,
    vmax=7.5,
    alpha=0.35,
    rasterized=True,
)
left.scatter(*X.T, c=[colors[k] for k in y], s=9, linewidths=0)
left.set(title="What the taxonomy's booster says", xlabel="$x_1$", ylabel="$x_2$")

for model, name, color in ((flat, "flat", "#D55E00"), (tree, "taxonomy", "#0072B2")):
    loss = [tree.cost_[y_test, said].mean() for said in model.staged_predict(X_test)]
    middle.plot(1 + np.arange(len(loss)), loss, color=color, linewidth=2, label=name)
middle.set(title="Mean tree loss of the test data", xlabel="stumps", ylabel="tree loss")
middle.legend(frameon=False)

history = tree.history_
right.plot(history.n_columns, history.primal, color="black", linewidth=2, label="objective")
right.plot(history.n_columns, history.dual, "--", color="black", linewidth=2, label="bound")
right.fill_between(history.n_columns, history.dual, history.primal, color="0.88")
right.set(title="Taxonomy: objective and bound", xlabel="stumps", ylim=(0, None))
right.legend(frameon=False)
for ax in (middle, right):
    ax.grid(alpha=0.25)

# %%
# What it brings
# --------------

for model, name in ((flat, "flat"), (tree, "taxonomy")):
    said = model.predict(X_test)
    cost = tree.cost_[y_test, said]
    print(
        f"{name:9s} error {np.mean(cost > 0):.3f}, of another family {np.mean(cost > 1):.3f}, "
        f"tree loss {cost.mean():.3f}"
    )

# %%
# On this draw the taxonomy's booster makes fewer mistakes that leave the family, and it is ahead
# from the first stumps, which speak for families. That is no law: C weighs the two differently, and
# with a smaller C the flat one is level or ahead. So search over C, with the tree loss as the
# score.
