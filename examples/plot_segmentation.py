r"""
A photograph in five labels, with and without regions
=====================================================

Each pixel prefers the labels whose colours it could have; neighbours prefer to agree, more so
where the photograph does not change; and the pixels of a superpixel prefer to agree as a whole. All
three are potentials of one field, and :func:`setwise.inference.solve_map` finds a labelling of low energy
together with a bound that no labelling can be below.
"""

# %%
# The unaries: five colours from k-means in the Lab space, and for each pixel the squared distance
# to each of them. Taken alone they give a speckled labelling.

import matplotlib.pyplot as plt
import numpy as np
from skimage import color, data, segmentation, transform
from sklearn.cluster import KMeans

import setwise as sw

photograph = transform.resize(data.astronaut(), (256, 256), anti_aliasing=True)
rng = np.random.default_rng(0)
lab = color.rgb2lab(np.clip(photograph + 0.04 * rng.normal(size=photograph.shape), 0, 1))
pixels = lab.reshape(-1, 3)
colours = KMeans(5, n_init=3, random_state=0).fit(pixels[::7]).cluster_centers_
unary = ((pixels[:, None] - colours) ** 2).sum(axis=2) / 200

# %%
# Neighbours: a Potts potential with contrast weights on the grid.

edges = sw.fields.grid_edges((256, 256))
pairwise = sw.fields.Field(unary) + sw.fields.Potts(
    edges, 2.0 * sw.fields.contrast_weights(lab, edges)
)

# %%
# Superpixels of two sizes, each a layer of regions. A region of one label costs nothing; the price
# of disagreement is concave, so the last pixels to give in cost the most and a clear minority may
# stay.

regions = pairwise
for size in (150, 600):
    superpixels = segmentation.slic(photograph, size, compactness=10, start_label=0)
    regions = regions + sw.fields.RegionConsistency(superpixels.ravel(), weight=0.6, alpha=0.8)

fields = {
    "unaries alone": sw.fields.Field(unary),
    "with neighbours": pairwise,
    "with neighbours and regions": regions,
}
answers = {name: sw.solve_map(field, tol=1e-3) for name, field in fields.items()}
for name, best in answers.items():
    print(f"{name}: {best.method}, energy {best.value:.1f}, no labelling below {best.bound:.1f}")

# %%
# The energies are of different fields and cannot be compared with one another; each can be
# compared with its own bound. What is left between the two is at most the gap.

figure, axes = plt.subplots(2, 2, figsize=(9, 9.4), layout="constrained")
axes[0, 0].imshow(photograph)
axes[0, 0].set_title("the photograph")
palette = np.clip(color.lab2rgb(colours[None])[0], 0, 1)
for axis, (name, best) in zip(axes.flat[1:], answers.items(), strict=True):
    axis.imshow(palette[best.labels].reshape(256, 256, 3))
    axis.set_title(
        f"{name}\nenergy {best.value:,.0f}, bound {best.bound:,.0f} "
        f"(gap {100 * best.relative_gap:.2g} %)"
    )
for axis in axes.flat:
    axis.set_axis_off()
plt.show()
