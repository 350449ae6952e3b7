r"""
Dice is neither submodular nor supermodular
===========================================

The Sørensen-Dice loss with m positives, n false negatives and q false positives is
:math:`(n + q) / (2m - n + q)`. If it were submodular, one more false negative would cost at most as
much after many mistakes as after few of them. If it were supermodular, it would cost at least as
much. Neither holds, because the two costs cross, as Figure 1 of the B_D paper shows.
"""

# %%
# The cost of one more false negative
# -----------------------------------
#
# The numbers are those of the paper. There are m = 10 positives. The set A holds :math:`n_A` false
# negatives and 8 false positives; its subset B holds :math:`n_A - 1` and 5. Each point below is a
# difference of two values of the set function itself, and equals the paper's equation (31) or (32).

import matplotlib.pyplot as plt
import numpy as np

import setwise as sw

m, q_A, q_B = 10, 8, 5
y = np.repeat([1, -1], m)
dice = sw.losses.Dice().set_function(y)


def mistakes(n, q):
    """Return the mask of the first n positives and the first q negatives."""
    return np.r_[np.arange(m) < n, np.arange(m) < q]


def cost_of_one_more(n, q):
    return dice(mistakes(n + 1, q)) - dice(mistakes(n, q))


def equation(n, q):
    return (2 * m + 2 * q) / ((2 * m - n + q - 1) * (2 * m - n + q))


n_A = np.arange(1, 9)
on_A = np.array([cost_of_one_more(n, q_A) for n in n_A])
on_B = np.array([cost_of_one_more(n - 1, q_B) for n in n_A])
assert np.allclose(on_A, equation(n_A, q_A))
assert np.allclose(on_B, equation(n_A - 1, q_B))

fig, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.0), layout="constrained")
left.plot(n_A, on_A, "o-", color="#D55E00", label="on the larger set A, equation (31)")
left.plot(n_A, on_B, "s--", color="#0072B2", label="on the smaller set B, equation (32)")
left.set(xlabel="false negatives in A, $n_A$", ylabel="cost of one more false negative")
left.legend(frameon=False)
right.axhline(0.0, color="#9A9A9A", linewidth=0.8)
right.plot(n_A, on_A - on_B, "o-", color="black")
right.text(3.4, 0.0009, "more on A than on B:\nnot submodular", color="#D55E00")
right.text(2.2, -0.0022, "less on A than on B:\nnot supermodular", color="#0072B2")
_ = right.set(
    xlabel="false negatives in A, $n_A$", ylabel="(31) minus (32)", ylim=(-0.0038, 0.0018)
)

# %%
# ``check`` finds such sets by itself. For up to sixteen elements it evaluates all sets.

small = sw.losses.Dice().set_function([1, 1, 1, -1, -1])
print(sw.functions.check(small))

# %%
# What to do about it
# -------------------
#
# The loss splits into a submodular and a supermodular part in closed form, at any size. The figure
# shows the parts as mistakes are added one by one: first all ten negatives are predicted positive,
# then all ten positives are missed. The supermodular part depends on the false negatives alone.

fig, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
order = np.r_[m : 2 * m, 0:m]
sw.plots.DecompositionDisplay.from_function(dice, order, ax=ax)
ax.set_xlabel("number of mistakes: ten false positives, then ten false negatives")
_ = ax.axvline(m, color="#9A9A9A", linewidth=0.8, linestyle=":")
