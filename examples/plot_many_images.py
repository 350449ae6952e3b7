"""
Many images, each with its proof
================================

``setwise.dask.map_fields`` solves a field for each of many images, on the workers of a cluster.
Every image has a certificate. An image that cannot be read becomes a row with its error and does
not stop the others. So after a long run the summary shows which images need a closer look.
"""

# %%
# There are twelve images of the same four regions with increasing noise, and one of them contains
# NaN. Here the images are arrays. In practice they would be file names, or a zarr array that does
# not fit into memory.

import numpy as np
import setwise as sw
from distributed import Client, LocalCluster
from setwise.dask import map_fields

rng = np.random.default_rng(0)
rows, columns = np.mgrid[:40, :40]
truth = 2 * (rows + 6 * np.sin(columns / 6) > 20) + (columns + 5 * np.cos(rows / 5) > 20)
levels = np.array([0.0, 1.0, 2.0, 3.0])
noise = np.linspace(0.3, 1.8, 12)
images = [levels[truth] + s * rng.normal(size=truth.shape) for s in noise]
images[4][10, 10] = np.nan


# %%
# A function builds the field of one image. It runs on the workers.


def build(image):
    unary = (image.reshape(-1, 1) - levels) ** 2
    edges = sw.fields.grid_edges(image.shape)
    return sw.fields.Field(unary) + sw.fields.Potts(edges, 0.9), image.shape


# %%
# Here the workers are threads of this process. Without ``processes=False`` they are processes, and
# on a cluster they are machines. The answers do not depend on this.

cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
client = Client(cluster)
names = [f"noise {s:.1f}" for s in noise]
results = map_fields(build, images, task="map", names=names).compute()
client.close()
cluster.close()
print(results.summary())

# %%
# The figure shows the labels and the relative gap of each image.

import matplotlib.pyplot as plt

fig, axes = plt.subplots(3, 4, figsize=(9.0, 7.4), layout="constrained")
for row, ax in zip(results.rows, axes.flat, strict=True):
    ax.set(xticks=[], yticks=[])
    if row.error is not None:
        ax.imshow(np.ma.masked_invalid(images[row.image]), cmap="gray")
        ax.set_title(f"{row.name}: failed", color="#D55E00", fontsize=9)
        ax.set_xlabel(row.error[:44], fontsize=7)
        continue
    labels = results[row.image]["labels"]
    ax.imshow(labels, cmap="viridis", vmin=0, vmax=3)
    proof = "proved" if row.proved else f"gap {row.relative_gap:.1e}"
    ax.set_title(f"{row.name}: {proof}", fontsize=9)
    ax.set_xlabel(f"{np.mean(labels == truth):.0%} right", fontsize=8)
_ = fig.suptitle(
    f"{results.n_proved} of {results.n_images} proved to be the best labelling, "
    f"{len(results.failed)} failed"
)
