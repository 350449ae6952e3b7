r"""
Where a labelling is uncertain
==============================

A labelling of least energy does not show how close other labellings are.
:func:`setwise.marginals` computes the probability of each label at each pixel and bounds
:math:`\log Z` from both sides, and :class:`setwise.plots.MarginalsDisplay` shows where the labels
are uncertain.
"""

# %%
# The field of the photograph consists of the distance of each pixel to each of six colours, a Potts
# potential between neighbours, and superpixels whose pixels should agree.

import matplotlib.pyplot as plt
import numpy as np
from skimage import color, data, segmentation, transform
from sklearn.cluster import KMeans

import setwise as sw

shape = (192, 192)
photograph = transform.resize(data.astronaut(), shape, anti_aliasing=True)
lab = color.rgb2lab(photograph)
pixels = lab.reshape(-1, 3)
colors = KMeans(6, n_init=3, random_state=0).fit(pixels[::5]).cluster_centers_
unary = ((pixels[:, None] - colors) ** 2).sum(axis=2) / 600

edges = sw.fields.grid_edges(shape)
neighbors = sw.fields.Field(unary) + sw.fields.Potts(
    edges, 0.8 * sw.fields.contrast_weights(lab, edges)
)
superpixels = segmentation.slic(photograph, 800, compactness=12, start_label=0)
regions = neighbors + sw.fields.RobustPn(
    superpixels, weight=0.9 * np.bincount(superpixels.ravel()), truncation=0.3, relative=True
)

fields = {"neighbours": neighbors, "neighbours and regions": regions}

# %%
# Both energies are submodular as functions of the pairs (pixel, label), so the method finds its
# best upper bound on log Z, up to the gap. The lower bound comes from a distribution that is a
# product of trees or of single pixels.

posts = {}
for name, field in fields.items():
    post = posts[name] = sw.marginals(field)
    print(
        f"{name}: log Z between {post.log_partition_lower:.0f} and {post.log_partition_upper:.0f}, "
        f"relative gap {post.relative_gap:.1e} after {post.n_iter} passes, "
        f"mean entropy {post.entropy.mean():.3f} of at most {np.log(6):.3f} nats"
    )

# %%
# Each row shows the labelling of least energy and the entropy of the marginals, which is dark where
# one label has nearly all the probability. The superpixels of highest mean entropy are outlined;
# many are in the ring of the collar, whose greys lie between two colours. With regions the labels
# follow the superpixels, and so does the entropy.

palette = np.clip(color.lab2rgb(colors[None])[0], 0, 1)
figure, axes = plt.subplots(2, 3, figsize=(11.5, 7.6), layout="constrained")
for row, (name, field) in zip(axes, fields.items(), strict=True):
    best = sw.solve_map(field, tol=1e-3)
    sw.plots.MarginalsDisplay.from_result(
        posts[name],
        image=photograph,
        labels=best.labels,
        regions=superpixels,
        colors=palette,
        ax=row,
    )
    row[1].set_title(f"labels, {name}")
plt.show()
