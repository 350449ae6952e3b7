r"""
One measure for all candidates
==============================

``score`` evaluates a model with the loss it was trained with. This is right for a single model and
misleading for a choice between losses, because a mild loss gives high scores to any prediction.
``sw.losses.scorer`` evaluates every candidate, and any estimator, with the same measure.
"""

# %%
# The data
# --------
#
# There are 400 examples with six labels, few of which are positive.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler

import setwise as sw

X, Y = make_multilabel_classification(
    n_samples=400, n_features=15, n_classes=6, n_labels=1, random_state=3
)
X = StandardScaler().fit_transform(X)
print(f"{Y.mean():.0%} of the labels are positive")

# %%
# Two tables of scores
# --------------------
#
# ``SetClassifierCV`` fits every fold along a path of C. Since C multiplies the sum over the rows,
# it is divided by their number here. Without ``scoring`` each model is evaluated with its own loss;
# with ``scoring`` all models are evaluated with the mean Jaccard index of the rows.

Cs = np.logspace(0, 3, 7)
judge = sw.losses.scorer("jaccard")
names = ("jaccard", "dice", "hamming")
options = {"Cs": Cs / len(X), "cv": 4, "tol": 1e-2}
own, same_score = {}, {}
for name in names:
    own[name] = sw.SetClassifierCV(name, **options).fit(X, Y)
    same_score[name] = sw.SetClassifierCV(name, scoring=judge, **options).fit(X, Y)

# %%
# The scorer takes any estimator, also one that does not learn from sets, such as one logistic
# regression per label.

rival = OneVsRestClassifier(LogisticRegression())
level = cross_val_score(rival, X, Y, scoring=judge, cv=4).mean()

# %%
# The picture
# -----------

fig, axes = plt.subplots(1, 2, figsize=(9, 3.9), layout="constrained", sharey=True)
styles = {"jaccard": ("o-", "#0072B2"), "dice": ("^-.", "#009E73"), "hamming": ("s--", "#D55E00")}
titles = ("Each by its own loss", "All by the Jaccard index")
for ax, models, title in zip(axes, (own, same_score), titles, strict=True):
    for name, (style, color) in styles.items():
        scores = models[name].scores_
        mean, error = scores.mean(axis=0), scores.std(axis=0, ddof=1) / np.sqrt(len(scores))
        ax.plot(Cs, mean, style, color=color, linewidth=2, label=f"trained with {name}")
        ax.fill_between(Cs, mean - error, mean + error, color=color, alpha=0.15, linewidth=0)
    ax.set(xscale="log", xlabel="$C$ times the number of rows", title=title)
    ax.grid(alpha=0.25)
axes[1].axhline(level, color="black", linewidth=1, linestyle=":", label="logistic regression")
axes[0].set_ylabel("score")
axes[0].legend(frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.72))
_ = axes[1].legend(*([item[-1:] for item in axes[1].get_legend_handles_labels()]), frameon=False)

# %%
# A search would choose the loss with the highest score:

for how, models in (("its own loss", own), ("the Jaccard index", same_score)):
    best = {name: model.scores_.mean(axis=0).max() for name, model in models.items()}
    best_scores = ", ".join(f"{name} {value:.3f}" for name, value in best.items())
    print(f"evaluated by {how}: {best_scores}; the best is {max(best, key=best.get)}")
print(f"logistic regression by the Jaccard index: {level:.3f}")

# %%
# Evaluated with its own loss, the Hamming model has a score that is higher by 0.2 at every C. This
# says nothing about its quality: four labels in five are negative, and it is easy to predict most
# of them correctly. With the same measure for all models the order is different, and the models are
# within a few hundredths of each other and of logistic regression, which is about the standard
# error. Therefore a warning is given if a search of scikit-learn varies ``loss`` and has no
# ``scoring``.
