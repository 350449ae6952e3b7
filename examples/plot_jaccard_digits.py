r"""
One set of digits, evaluated by the Jaccard index
=================================================

The task is to find the 8s among scikit-learn's digits. The predictions for all digits together have
one Jaccard index. So the training sample is *one* set with one loss, and the Lovász hinge of this
loss is one convex function of all scores. It is compared with the plain hinge, which is the Lovász
hinge of the number of mistakes.
"""

# %%
# The two surrogates differ only in their loss. Both are 1 if all scores are 0.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import setwise as sw

images, digits = load_digits(return_X_y=True)
X = np.column_stack([images / 16.0, np.ones(len(images))])
y = digits == 8
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
surrogates = {
    "Lovász hinge of Jaccard": sw.surrogates.LovaszHinge("jaccard"),
    "plain hinge": sw.surrogates.LovaszHinge(sw.losses.Hamming() * (1 / len(y_train))),
}

# %%
# The scorer minimises :math:`P(w) = \frac12 |w|^2 + C R(w)`, where R is the surrogate at the scores
# :math:`Xw`. Every value and subgradient of R gives a plane below it, and so does an average
# :math:`\langle a, w \rangle + b` of planes. The minimum over this average is at :math:`w = -Ca`.
# Each step adds the plane at the current w with the coefficient that raises this minimum most.
# There is no step size, and the minimum over the average is a lower bound: P minus the bound is a
# certificate.


def train(surrogate, X, y, C, max_iter=500, tol=1e-3):
    a, b = np.zeros(X.shape[1]), 0.0
    best, w_best = np.inf, a
    for _ in range(max_iter):
        w = -C * a
        risk, gradient = surrogate.value_and_gradient(y, X @ w)
        value, bound = 0.5 * w @ w + C * risk, C * b - 0.5 * C**2 * a @ a
        if value < best:
            best, w_best = value, w
        if best - bound <= tol * max(1.0, best):
            break
        plane = X.T @ gradient
        turn, lift = plane - a, risk - plane @ w - b
        share = np.clip((lift - C * a @ turn) / (C * turn @ turn), 0.0, 1.0)
        a, b = a + share * turn, b + share * lift
    return w_best


# %%
# The figure shows the Jaccard index on the test digits for each C and each surrogate.

Cs = 10.0 ** np.arange(-1.0, 4.5, 0.5)
jaccard = sw.losses.Jaccard()
index = {
    name: [1.0 - jaccard(y_test, X_test @ train(surrogate, X_train, y_train, C) > 0) for C in Cs]
    for name, surrogate in surrogates.items()
}

fig, ax = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
for (name, values), style, color in zip(
    index.items(), ("o-", "s--"), ("#0072B2", "#D55E00"), strict=True
):
    ax.plot(Cs, values, style, color=color, linewidth=2, label=name)
    print(f"{name}: best {max(values):.3f}")
ax.set_xscale("log")
ax.set(xlabel="$C$, weight of the surrogate", ylabel="Jaccard index, test digits")
ax.grid(alpha=0.25)
_ = ax.legend(frameon=False, loc="center right")

# %%
# One digit in ten is an 8. With a small C the model of the plain hinge predicts no 8 at all,
# because this makes few mistakes although the Jaccard index is 0. For the Lovász hinge, such
# predictions have the largest possible loss, so its model finds the digits at much smaller values
# of C. At their best values of C the two are equally good on this one split. ``make demo`` compares
# them over five folds, with C chosen by cross-validation.
