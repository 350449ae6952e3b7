r"""
Define your own potential
=========================

A grower knows that a leaf covers about a tenth of each photograph. This is an energy of a count,

.. math:: V(x) = w \, \bigl|\, |\{i : x_i = 1\}| - m \,\bigr|,

which the library does not contain. A subclass of ``Potential`` needs one method, which returns the
terms of the potential. Every inference method that supports such terms then supports the potential,
and its answer has a bound.
"""

# %%
# The potential needs only ``terms``. The table has a cost for each number of variables that leave
# label 0.
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

import setwise as sw


@dataclass(frozen=True, eq=False)
class Area(sw.fields.Potential):
    """The potential weight |number of variables with label 1 - target|."""

    target: int
    weight: float

    def terms(self, n_variables, n_labels):
        counts = np.arange(n_variables + 1)
        table = self.weight * np.abs(counts - self.target)
        return [sw.fields.CardinalityTerm(np.zeros(n_variables, int), table)]


# %%
# The photograph of the leaf is dark: the model expects a brightness of 0.32, but the leaf in the
# image has 0.2.
height, width = 48, 64
y, x = np.mgrid[:height, :width]
leaf = ((x - 36) / 17.0) ** 2 + ((y - 22 - 0.25 * (x - 36)) / 7.0) ** 2 < 1
rng = np.random.default_rng(0)
image = 0.2 * leaf + rng.normal(0.0, 0.2, leaf.shape)

unary = np.stack([image**2, (image - 0.32) ** 2], axis=-1).reshape(-1, 2)
edges = sw.fields.grid_edges(leaf.shape, connectivity=2)
field = sw.fields.Field(unary) + sw.fields.Potts(edges, 0.06)

# %%
# Without the potential the predicted leaf is too small. With it the area is right, and the bound
# shows how good the labelling is.
plain = sw.solve_map(field)
known = sw.solve_map(field + Area(int(leaf.sum()), 0.2))
for name, best in (("as it is", plain), ("with the area known", known)):
    labels = best.labels.reshape(leaf.shape)
    overlap = (labels & leaf).sum() / (labels | leaf).sum()
    print(f"{name}: {labels.sum()} pixels of {leaf.sum()}, Jaccard index {overlap:.2f},")
    print(f"  by {best.method}, {best.relative_gap:.1%} relative gap")

# %%
fig, axes = plt.subplots(1, 3, figsize=(10, 2.9), layout="constrained")
axes[0].imshow(image, cmap="gray")
axes[0].set_title("photograph, and the leaf")
for ax, best, title in ((axes[1], plain, "Potts alone"), (axes[2], known, "its area known")):
    ax.imshow(best.labels.reshape(leaf.shape), cmap="gray", vmin=0, vmax=1)
    ax.set_title(f"{title}: {best.labels.sum()} of {leaf.sum()} pixels")
for ax in axes:
    ax.contour(leaf, [0.5], colors="#d55e00", linewidths=1.2)
    ax.set_axis_off()
plt.show()
