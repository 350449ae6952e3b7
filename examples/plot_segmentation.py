r"""
A noisy photograph in six labels, with and without regions
==========================================================

Each pixel prefers the labels whose colours are near its own; neighbours prefer to agree, more so
where the photograph does not change; and the pixels of a superpixel prefer to agree as a whole. All
three are potentials of one field, and :func:`setwise.solve_map` finds a labelling of low
energy together with a lower bound on the energy of all labellings.
"""

# %%
# The example is a noisy photograph, superpixels of it, and six colours from k-means over the means
# of the superpixels. The unaries are the squared distances of each pixel to each colour in Lab
# space.

import matplotlib.pyplot as plt
import numpy as np
from skimage import color, data, filters, segmentation, transform
from sklearn.cluster import KMeans

import setwise as sw

shape = (256, 256)
photograph = transform.resize(data.astronaut(), shape, anti_aliasing=True)
rng = np.random.default_rng(0)
noisy = np.clip(photograph + 0.12 * rng.normal(size=photograph.shape), 0, 1)

superpixels = segmentation.slic(noisy, 2000, compactness=12, sigma=1.5, start_label=0).ravel()
sizes = np.bincount(superpixels)
pixels = color.rgb2lab(noisy).reshape(-1, 3)
means = np.stack([np.bincount(superpixels, channel) / sizes for channel in pixels.T], axis=1)
kmeans = KMeans(6, n_init=3, random_state=0).fit(means, sample_weight=sizes)
colors = kmeans.cluster_centers_
unary = ((pixels[:, None] - colors) ** 2).sum(axis=2) / 600

# %%
# The neighbours have a Potts potential on the grid, weaker across the edges of the photograph. The
# contrast is computed from a slightly blurred photograph, because otherwise it would be dominated
# by the noise.

edges = sw.fields.grid_edges(shape)
blurred = color.rgb2lab(filters.gaussian(noisy, 1.0, channel_axis=2))
neighbors = sw.fields.Field(unary) + sw.fields.Potts(
    edges, 1.2 * sw.fields.contrast_weights(blurred, edges)
)

# %%
# A superpixel with a single label costs nothing. Each pixel outside its most common label costs 3,
# up to 30 % of the pixels; beyond that the cost is constant, because the superpixel may contain two
# objects.

regions = neighbors + sw.fields.RobustPn(
    superpixels, weight=0.9 * sizes, truncation=0.3, relative=True
)
fields = {
    "colours alone": sw.fields.Field(unary),
    "neighbours": neighbors,
    "neighbours and regions": regions,
}
answers = {name: sw.solve_map(field, tol=1e-3) for name, field in fields.items()}
for name, best in answers.items():
    print(f"{name}: {best.method}, energy {best.value:.1f}, no labelling below {best.bound:.1f}")

# %%
# The energies belong to different fields and cannot be compared with one another, only with their
# own bounds. To compare the labellings, we count the pixels whose label is the colour nearest to
# the photograph without noise.

clean = color.rgb2lab(photograph).reshape(-1, 3)
nearest = ((clean[:, None] - colors) ** 2).sum(axis=2).argmin(axis=1)
palette = np.clip(color.lab2rgb(colors[None])[0], 0, 1)

figure, axes = plt.subplots(2, 2, figsize=(9, 9.6), layout="constrained")
axes[0, 0].imshow(noisy)
axes[0, 0].set_title("the photograph, with noise\n")
for axis, (name, best) in zip(axes.flat[1:], answers.items(), strict=True):
    axis.imshow(palette[best.labels].reshape(*shape, 3), interpolation="nearest")
    right = np.mean(best.labels == nearest)
    axis.set_title(f"{name}: {right:.1%} right\n{best.relative_gap:.2%} left to prove")
for axis in axes.flat:
    axis.set_axis_off()
plt.show()

# %%
# The regions remove most specks that remain with neighbours alone. For this score, regions would
# not be needed: neighbours with a larger weight are as good.

strong = sw.fields.Potts(edges, 3.0 * sw.fields.contrast_weights(blurred, edges))
best = sw.solve_map(sw.fields.Field(unary) + strong, tol=np.inf)
print(f"neighbours with a weight of 3: {np.mean(best.labels == nearest):.1%} right")
