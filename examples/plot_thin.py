r"""
A forest with fewer trees
=========================

A fitted forest or boosting is a pool of weak learners. ``sw.thin`` recomputes the weights of its
trees by StructBoost's linear program, which gives most of them a weight of zero. The result is
smaller and faster. A bound shows how much lower the objective could be with other weights of the
same trees.
"""

# %%
# Two ensembles
# -------------
#
# Half of the handwritten digits is used to fit the ensembles, a quarter to compute the weights of
# the trees, and a quarter to test.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split

import setwise as sw

X, y = load_digits(return_X_y=True)
X, X_rest, y, y_rest = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
X_fresh, X_test, y_fresh, y_test = train_test_split(
    X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0
)
ensembles = {
    "forest": RandomForestClassifier(100, random_state=0).fit(X, y),
    "boosting": HistGradientBoostingClassifier(max_iter=10, early_stopping=False).fit(X, y),
}

# %%
# Fewer trees
# -----------
#
# C is chosen by cross-validation on rows that the ensembles were not trained on, here in two folds
# to save time. Boosting has one tree per class in every round.

thinned = {name: sw.thin(model, X_fresh, y_fresh, cv=2) for name, model in ensembles.items()}
for name, few in thinned.items():
    print(
        f"{name:8s} {few.n_trees_} trees, test score {ensembles[name].score(X_test, y_test):.3f}; "
        f"kept {few.n_kept}, test score {few.score(X_test, y_test):.3f}, "
        f"relative gap {few.gap_:.1e}"
    )

# %%
# How few?
# --------
#
# ``max_trees`` limits their number. The bound still holds for weights of all trees, so the gap
# bounds what the limit can cost. For comparison, the figure shows the first trees of the ensemble
# without new weights.


def first_trees(name, model, n):
    """Return the score of the first n trees."""
    if name == "forest":
        said = np.mean([tree.predict_proba(X_test) for tree in model.estimators_[:n]], axis=0)
        return np.mean(said.argmax(axis=1) == y_test)
    rounds = list(model.staged_predict(X_test))
    return np.mean(rounds[max(n // 10, 1) - 1] == y_test)


limits = [10, 20, 40]
fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, ensembles.items(), strict=True):
    few = [sw.thin(model, X_fresh, y_fresh, thinned[name].C_, max_trees=n) for n in limits]
    kept = [m.n_kept for m in few]
    ax.plot(kept, [m.score(X_test, y_test) for m in few], "o-", color="#0072B2", label="thinned")
    first = [first_trees(name, model, n) for n in limits]
    ax.plot(limits, first, "s--", color="#D55E00", label="the first ones")
    ax.axhline(model.score(X_test, y_test), color="0.4", label=f"all {thinned[name].n_trees_}")
    ax.set(title=name, xlabel="trees", xscale="log", xticks=limits, xticklabels=limits)
    ax.minorticks_off()
    ax.grid(alpha=0.25)
    ax.legend(frameon=False, loc="lower right")
axes[0].set_ylabel("test score")

# %%
# Why the rows must be new
# ------------------------
#
# On the rows of ``fit`` every tree of a forest is nearly always right, so these rows cannot
# distinguish the trees. A bootstrap forest still needs no fresh rows: with ``oob=True`` each tree
# is evaluated only on the rows that were not in its bootstrap sample.

bags = sw.thin(ensembles["forest"], X, y, thinned["forest"].C_, oob=True)
print(f"out of bag: kept {bags.n_kept}, test score {bags.score(X_test, y_test):.3f}")
plt.show()
