"""
Add your own loss
=================

A loss of your own needs no class: it can be a formula of the number of mistakes
(``CardinalityLoss``), of false negatives and false positives (``CountsLoss``), or any function of
the set of mistakes (``SetLoss``). You can then check it, decompose it, and use it wherever a loss
is expected.
"""

# %%
# A batch of p parts is inspected. The first wrong verdicts cost the most. If more than half of the
# verdicts are wrong, the batch is returned, which has an additional cost.

# [own-loss]
import numpy as np
import setwise as sw

loss = sw.losses.CardinalityLoss(lambda k, p: np.sqrt(k / p) + np.maximum(0.0, 2.0 * k / p - 1.0))

y = np.array([1, 1, 1, -1, -1, -1, -1, -1])
print(sw.functions.check(loss.set_function(y)))  # neither submodular nor supermodular
f, g = sw.functions.decompose(loss.set_function(y))  # but the sum of two that are
surrogate = sw.surrogates.DecomposedHinge(loss)
value, gradient = surrogate.value_and_gradient(y, scores=np.zeros(8))
# [own-loss-end]

# %%
# At scores of zero every verdict is undecided, and the surrogate equals the loss with all of them
# wrong. A step against the gradient moves every score towards its label.

print(value, loss(y, -y))
print(gradient.round(3))
assert np.isclose(value, loss(y, -y))
assert np.all(gradient * y <= 0)

# %%
# The figure explains the result of the check: the loss is first concave and then convex. Its
# submodular part is f, and the rest is g. Since f is nowhere negative, the surrogate is an
# extension of the loss, as ``properties`` reports.

import matplotlib.pyplot as plt

print(surrogate.properties(y))
fig, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.0), layout="constrained")
sw.plots.DecompositionDisplay.from_loss(loss, 8, ax=left)
left.set_title("eight parts")

# One score varies while the other seven are zero or correct with a margin of 1.
scores = np.linspace(-2.0, 2.0, 81)
for others, style in ((0.0, "-"), (1.0, "--")):
    rows = np.tile(others * y.astype(float), (len(scores), 1))
    rows[:, 0] = scores
    values = surrogate(np.tile(y, (len(scores), 1)), rows)
    label = "the others at zero" if others == 0 else "the others right"
    right.plot(scores, values, style, color="#0072B2", linewidth=2, label=label)
right.set_title("one score moves")
right.set(xlabel="score of the first part (positive)", ylabel="decomposed hinge")
right.set_ylim(bottom=0.0)
_ = right.legend(frameon=False)

# %%
# A loss of false negatives n and false positives q among m positives and r negatives is as short.
# Here each miss costs its share of the positives, and at most two false alarms are counted.

alarms = sw.losses.CountsLoss(lambda n, q, m, r: n / max(m, 1) + np.minimum(q, 2.0) / 4.0)
print(sw.functions.check(alarms.set_function(y)))
print(sw.surrogates.LovaszHinge(alarms)(y, np.zeros(8)))
