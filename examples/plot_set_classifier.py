r"""
Which labels form a set
=======================

Five labels for each of many examples make a table of answers, and the Jaccard index can evaluate
that table in two ways: row by row, the labels of one example together, or column by column, all
answers for one label together. ``SetClassifier`` can learn for either; the parameter ``sets``
selects one. Here both models are evaluated in both ways, and so is a model with the plain hinge,
for which every answer is a set of its own.
"""

# %%
# The data
# --------
#
# There are four training samples of 200 examples each, and a thousand test examples.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_multilabel_classification
from sklearn.preprocessing import StandardScaler

import setwise as sw

N, P, SAMPLES = 200, 5, 4
X, Y = make_multilabel_classification(n_samples=1000 + SAMPLES * N, n_classes=P, random_state=0)
X = StandardScaler().fit_transform(X)
X_test, Y_test = X[:1000], Y[:1000]
X_train, Y_train = X[1000:].reshape(SAMPLES, N, -1), Y[1000:].reshape(SAMPLES, N, P)

# %%
# Three kinds of sets
# -------------------
#
# By default the rows of a matrix Y are the sets; with ``sets="columns"`` its columns are. All
# surrogates are 1 for each set if the weights are 0. With C divided by the number of sets, the
# three objectives have the same initial value, so they can be compared at equal C. A relative gap
# of 1e-2 is enough for a figure.

TOL = 1e-2


def by_rows(X, Y, C):
    return sw.SetClassifier("jaccard", C=C / len(Y), tol=TOL).fit(X, Y)


def by_columns(X, Y, C):
    return sw.SetClassifier("jaccard", C=C / Y.shape[1], sets="columns", tol=TOL).fit(X, Y)


def one_by_one(X, Y, C):
    return sw.SetClassifier("jaccard", surrogate="hinge", C=C / Y.size, tol=TOL).fit(X, Y)


# %%
# Each model gets two scores on the test examples: the mean Jaccard index of the rows, and of the
# columns.

jaccard = sw.losses.Jaccard()


def both_scores(answers):
    return 1.0 - jaccard(Y_test, answers).mean(), 1.0 - jaccard(Y_test.T, answers.T).mean()


learners = {
    "Lovász hinge, rows": by_rows,
    "Lovász hinge, columns": by_columns,
    "plain hinge": one_by_one,
}
Cs = 10.0 ** np.arange(0.5, 3.1, 0.5)
samples = list(zip(X_train, Y_train, strict=True))
index = {
    name: np.array([[both_scores(learn(*s, C).predict(X_test)) for C in Cs] for s in samples])
    for name, learn in learners.items()
}  # (samples, Cs, two scores)

# %%
# The gap
# -------
#
# The left panel shows one fit by rows. Each round of cutting planes may lower the best objective
# found, the primal, and raises the bound, the dual. The minimum always lies between them.

history = by_rows(X_train[0], Y_train[0], Cs[-1]).history_
rounds = np.arange(1, len(history.primal) + 1)

fig, (left, *axes) = plt.subplots(1, 3, figsize=(11.5, 3.9), layout="constrained")
left.plot(rounds, history.primal / Cs[-1], color="black", linewidth=2, label="best objective")
left.plot(rounds, history.dual / Cs[-1], "--", color="black", linewidth=2, label="bound")
left.fill_between(rounds, history.dual / Cs[-1], history.primal / Cs[-1], color="0.88")
left.set(xlabel="round", ylabel="objective / $C$", title=f"Fit by rows, $C$ = {Cs[-1]:g}")
left.legend(frameon=False)

styles = (("o-", "#0072B2"), ("^-.", "#009E73"), ("s--", "#D55E00"))
for k, (ax, title) in enumerate(
    zip(axes, ("Evaluated by rows", "Evaluated by columns"), strict=True)
):
    for (name, values), (style, color) in zip(index.items(), styles, strict=True):
        mean = values[:, :, k].mean(axis=0)
        error = values[:, :, k].std(axis=0, ddof=1) / np.sqrt(SAMPLES)
        ax.plot(Cs, mean, style, color=color, linewidth=2, label=name)
        ax.fill_between(Cs, mean - error, mean + error, color=color, alpha=0.15, linewidth=0)
    ax.set(xscale="log", xlabel="$C$", ylabel="mean Jaccard index", title=title)
for ax in (left, *axes):
    ax.grid(alpha=0.25)
_ = axes[0].legend(frameon=False)

# %%
# The table lists the best score of each model over C, with the standard error over the samples.

for name, values in index.items():
    cells = []
    for k, kind in enumerate(("rows", "columns")):
        best = values[:, :, k].mean(axis=0).argmax()
        error = values[:, best, k].std(ddof=1) / np.sqrt(SAMPLES)
        cells.append(f"{kind} {values[:, best, k].mean():.3f} ± {error:.3f}")
    print(f"{name:22s}{', '.join(cells)}")

# %%
# C is chosen on the test examples, which favours all three models alike; a search would choose it
# by cross-validation. The models trained by columns are clearly better when evaluated by columns,
# and clearly worse when evaluated by rows: here the choice of the set matters more than the choice
# of the surrogate. Evaluated by rows, the Lovász hinge of the rows and the plain hinge are equally
# good within the standard error.
#
# These data are one draw of the generator. With other values of ``random_state`` the order changes.
# Evaluated by rows, sometimes the plain hinge is better and sometimes the Lovász hinge; evaluated
# by columns, the models trained by rows can be better. So try each of them, and let a search decide
# by the score that matters to you.
