"""
Surfaces of surrogates over two elements
========================================

A loss of two predictions has four values: for no mistake, for a mistake in the first, for one in
the second, and for two mistakes. A surrogate is a function of the two scores. As functions of
:math:`s_i = 1 - g_i y_i`, the four values are at the corners of the unit square, and a surrogate
that passes through them *extends* the loss. The figures correspond to Figures 3 and 4 of the Lovász
hinge paper, for its three losses.
"""

# %%
# Three losses by four surrogates
# -------------------------------
#
# The values are listed as (neither, first, second, both). Two mistakes together cost less than
# their sum in a submodular loss and more in a supermodular one; in the second loss they even cost
# less than one of them.

import matplotlib.pyplot as plt

import setwise as sw

losses = {
    "(i) submodular, increasing": [0.0, 1.0, 1.0, 1.2],
    "(ii) submodular, not increasing": [0.0, 1.0, 1.0, 0.4],
    "(iii) supermodular, increasing": [0.0, 1.0, 1.0, 2.8],
}
losses = {name: sw.losses.SetLoss(sw.functions.Table(v)) for name, v in losses.items()}
submodular, falling, supermodular = losses.values()

fig, axes = plt.subplots(3, 3, figsize=(10.5, 9.8), subplot_kw={"projection": "3d"})
fig.subplots_adjust(left=0.04, right=0.98, bottom=0.02, top=0.95, wspace=0.12, hspace=0.12)
for row, (name, loss) in zip(axes, losses.items(), strict=True):
    # The Lovász hinge requires a submodular loss. The decomposed hinge takes any loss, and equals
    # the Lovász hinge for submodular ones.
    first = sw.surrogates.DecomposedHinge if loss is supermodular else sw.surrogates.LovaszHinge
    # Use the largest scale that extends the loss; no scale extends a loss that decreases.
    scale = 1.0 if loss is falling else "extension"
    surrogates = {
        "decomposed hinge" if loss is supermodular else "Lovász hinge": first(loss),
        "margin rescaling": sw.surrogates.MarginRescaling(loss, scale=scale),
        "slack rescaling": sw.surrogates.SlackRescaling(loss),
    }
    for ax, (title, surrogate) in zip(row, surrogates.items(), strict=True):
        sw.plots.SurrogateDisplay.from_surrogate(surrogate, ax=ax)
        ax.set_title(f"{title}\n{name}", fontsize=9.5, y=0.96)

# %%
# Every surface is convex, and in the first and last rows all dots lie on it. In the second row
# margin and slack rescaling lie above a dot, because they are extensions of increasing losses only.
# ``properties`` reports the same.

for surrogate in (
    sw.surrogates.LovaszHinge(falling),
    sw.surrogates.SlackRescaling(falling),
):
    print(surrogate.properties([1, 1]))

# %%
# Why the Lovász hinge has two cases
# ----------------------------------
#
# For an increasing loss each s is truncated at 0, so that the hinge of the Hamming loss is the
# usual sum of hinges. The same truncation for a loss that decreases somewhere (``case=1``, Figure
# 4) keeps the dots on the surface but not its convexity. Truncating the whole sum (``case=2``,
# which ``"auto"`` takes here) keeps both. The right panel shows both
# surfaces along the line :math:`s_1 = 1`.

fig = plt.figure(figsize=(10.5, 3.6))
grid = fig.add_gridspec(
    1, 3, width_ratios=(1.2, 1.2, 1.0), left=0.02, right=0.98, bottom=0.15, top=0.92, wspace=0.15
)
line = fig.add_subplot(grid[2])
styles = {1: ("#D55E00", "-"), 2: ("#0072B2", "--")}
for column, (case, (color, style)) in enumerate(styles.items()):
    ax = fig.add_subplot(grid[column], projection="3d")
    surrogate = sw.surrogates.LovaszHinge(falling, case=case)
    display = sw.plots.SurrogateDisplay.from_surrogate(surrogate, ax=ax)
    ax.set_title(f"case {case}: " + ("not convex" if case == 1 else "convex"), fontsize=10, y=0.96)
    at_one = display.values[display.s == 1.0][0]
    line.plot(display.s, at_one, style, color=color, linewidth=2, label=f"case {case}")
line.plot([0, 1], [1.0, 0.4], "o", color="black", label="loss")
line.set(xlabel="$s_2$", ylabel="surrogate at $s_1 = 1$")
_ = line.legend(frameon=False)
