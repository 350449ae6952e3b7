r"""
Set functions: families, extension, minimisation
================================================

A set function gives a number to every subset of n elements. setwise uses only two operations: the
value of a set, and the marginal gains along an order, the *greedy pass*. This page shows the
families, the extension to real vectors that one greedy pass computes, and the minimisation of a
submodular function with a proof of optimality.
"""

# %%
# Families
# --------
#
# A function is submodular if an element adds at most as much to a set as to any subset of it. Each
# line below adds the same twelve elements in the same order. The elements of a coverage differ, so
# its steps vary; the steps of a submodular function of the size can only shrink. A cut need not
# increase: the cut of the ring is largest if every second element is in the set.

import matplotlib.pyplot as plt
import numpy as np

import setwise as sw

n = 12
rng = np.random.default_rng(0)
ring = [[i, (i + 1) % n] for i in range(n)]
families = {
    "Modular": sw.functions.Modular(np.full(n, 0.25)),
    "Cardinality, square root": sw.functions.Cardinality(np.sqrt(np.arange(n + 1))),
    "ConcaveOfModular, log": sw.functions.ConcaveOfModular(np.log1p, rng.uniform(0, 2, n)),
    "Coverage": sw.functions.Coverage([rng.choice(20, 4) for _ in range(n)], np.full(20, 0.18)),
    "Cut of a ring": 0.5 * sw.functions.Cut(ring, n=n),
}
styles = ("o-", "s--", "^-.", "D:", "v-")
colors = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7")

fig, ax = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
order = np.r_[0:n:2, 1:n:2]  # every second element, then those between
for (name, F), style, color in zip(families.items(), styles, colors, strict=True):
    ax.plot(np.append(0.0, np.cumsum(F.gains(order))), style, color=color, label=name, markersize=5)
    print(f"{name:26s}submodular {F.is_submodular}, increasing {F.is_increasing}")
ax.set(xlabel="elements added", ylabel="value of the set")
_ = ax.legend(frameon=False)

# %%
# The Lovász extension
# --------------------
#
# At the indicator of a set the extension is the value of the set. It is linear on each region where
# the order of the coordinates stays the same, and convex if and only if the function is submodular.
# ``base_vertex`` returns its gradient.

F = sw.functions.Table([0.0, 1.0, 0.6, 0.4])
grid = np.linspace(0.0, 1.0, 51)
extension = np.array([[sw.functions.lovasz_extension(F, [a, b]) for a in grid] for b in grid])

fig, ax = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
lines = ax.contourf(grid, grid, extension, levels=np.arange(0.0, 1.01, 0.1), cmap="viridis")
fig.colorbar(lines, ax=ax, label="Lovász extension")
ax.plot([0, 1], [0, 1], color="white", linewidth=1, linestyle="--")
for w in ([0.75, 0.3], [0.3, 0.75]):
    slope = sw.functions.base_vertex(F, w)
    ax.annotate(
        "", xytext=w, xy=w + 0.16 * slope, arrowprops={"arrowstyle": "-|>", "color": "white"}
    )
for corner in ((0, 0), (1, 0), (0, 1), (1, 1)):
    ax.plot(*corner, "o", color="#D55E00", markeredgecolor="white", markersize=9)
    offset = np.where(np.array(corner) == 1, 11, -11)
    ax.annotate(
        f"{F(np.array(corner, bool)):g}",
        corner,
        xytext=offset,
        textcoords="offset points",
        ha="center",
        va="center",
    )
ax.set(xlim=(-0.12, 1.12), ylim=(-0.12, 1.12))
_ = ax.set(xlabel="$w_1$", ylabel="$w_2$", aspect="equal")

# %%
# Minimisation with a certificate
# -------------------------------
#
# A noisy picture is cleaned by the set A of pixels that minimises
#
# .. math:: F(A) = \sum_{i \in A} (\tfrac12 - x_i) + \lambda\, \mathrm{cut}(A),
#
# a modular function that follows the pixels and a cut that penalises the boundary. ``minimize``
# uses only the gains of their sum, and its bound proves that no set has a lower value.

height, width, weight = 40, 40, 0.35
row, column = np.mgrid[:height, :width]
radius = np.hypot(row - 19.5, column - 19.5)
clean = (radius < 16) & (radius > 7)
noisy = clean + rng.normal(0.0, 0.5, clean.shape)

index = np.arange(height * width).reshape(height, width)
across = np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], axis=1)
down = np.stack([index[:-1].ravel(), index[1:].ravel()], axis=1)
boundary = sw.functions.Cut(np.concatenate([across, down]), weight, n=index.size)
F = sw.functions.Modular((0.5 - noisy).ravel()) + boundary

path = []
best = sw.functions.minimize(F, callback=lambda found: path.append((found.value, found.bound)))
found = best.mask.reshape(clean.shape)
print(f"value {best.value:.6f}, bound {best.bound:.6f}, exact {best.exact}")
print(f"wrong pixels: {np.sum((noisy > 0.5) != clean)} thresholded, {np.sum(found != clean)} found")

fig, axes = plt.subplots(1, 4, figsize=(11.0, 3.0), layout="constrained")
for ax, image, title in zip(
    axes, (noisy, noisy > 0.5, found), ("noisy", "thresholded", "minimiser"), strict=False
):
    ax.imshow(image, cmap="gray", interpolation="nearest")
    ax.set_title(title)
    ax.set_axis_off()
values, bounds = np.array(path).T
axes[3].plot(values, color="#D55E00", linewidth=2, label="value")
axes[3].plot(bounds, "--", color="#0072B2", linewidth=2, label="bound")
axes[3].set(xlabel="greedy passes", title="certificate")
axes[3].set_ylim(best.value - 120, 20)
_ = axes[3].legend(frameon=False)
