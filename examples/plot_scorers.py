r"""
One judge for all candidates
============================

``score`` tells how well a model does by the loss it was trained with. That is the right question
for one model and the wrong one for a choice between losses: a mild loss gives high scores, whatever
is predicted. ``sw.losses.scorer`` judges every candidate by the same measure, and any estimator can
be judged by it.
"""

# %%
# The data
# --------
#
# 400 examples with six labels, few of which are there at a time.

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
print(f"{Y.mean():.0%} of the labels are there")

# %%
# Two tables of scores
# --------------------
#
# ``SetClassifierCV`` fits every fold along a path of C. With ``reduction="mean"`` a value of C
# means the same for all three losses. Without ``scoring`` each model is judged by its own loss;
# with it, all are judged by the Jaccard index of the rows.

Cs = np.logspace(0, 3, 7)
judge = sw.losses.scorer("jaccard")
names = ("jaccard", "dice", "hamming")
options = {"Cs": Cs, "cv": 4, "reduction": "mean", "tol": 1e-2}
own, alike = {}, {}
for name in names:
    own[name] = sw.SetClassifierCV(name, **options).fit(X, Y)
    alike[name] = sw.SetClassifierCV(name, scoring=judge, **options).fit(X, Y)

# %%
# Any estimator can be judged, also one that knows nothing of sets: logistic regressions, one a
# label.

rival = OneVsRestClassifier(LogisticRegression())
level = cross_val_score(rival, X, Y, scoring=judge, cv=4).mean()

# %%
# The picture
# -----------

fig, axes = plt.subplots(1, 2, figsize=(9, 3.9), layout="constrained", sharey=True)
styles = {"jaccard": ("o-", "#0072B2"), "dice": ("^-.", "#009E73"), "hamming": ("s--", "#D55E00")}
titles = ("Each by its own loss", "All by the Jaccard index")
for ax, models, title in zip(axes, (own, alike), titles, strict=True):
    for name, (style, color) in styles.items():
        scores = models[name].scores_
        mean, error = scores.mean(axis=0), scores.std(axis=0, ddof=1) / np.sqrt(len(scores))
        ax.plot(Cs, mean, style, color=color, linewidth=2, label=f"trained with {name}")
        ax.fill_between(Cs, mean - error, mean + error, color=color, alpha=0.15, linewidth=0)
    ax.set(xscale="log", xlabel="$C$", title=title)
    ax.grid(alpha=0.25)
axes[1].axhline(level, color="black", linewidth=1, linestyle=":", label="logistic regression")
axes[0].set_ylabel("score")
axes[0].legend(frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.72))
_ = axes[1].legend(*([item[-1:] for item in axes[1].get_legend_handles_labels()]), frameon=False)

# %%
# What a search would choose: the loss with the highest score.

for how, models in (("its own loss", own), ("the Jaccard index", alike)):
    best = {name: model.scores_.mean(axis=0).max() for name, model in models.items()}
    told = ", ".join(f"{name} {value:.3f}" for name, value in best.items())
    print(f"judged by {how}: {told}; the best is {max(best, key=best.get)}")
print(f"logistic regression by the Jaccard index: {level:.3f}")

# %%
# By its own loss the Hamming model is ahead by 0.2 at every C, and that says nothing: four labels
# in five are not there, and it is easy to be right about most of them. Judged alike, the order is
# another, and the models are within a few hundredths of each other and of logistic regression,
# which is about what the standard error allows to tell. A search of scikit-learn's that sets
# ``loss`` and has no ``scoring`` warns for this reason.
