r"""
Nuclei in a volume that is cut in blocks
========================================

A volume that does not fit into memory lies on disk, for instance as an OME-Zarr group of a
microscope. :func:`setwise.dask.solve_map` reads it block by block, solves each block for all labels
around it, and writes the labels that are certain. So the labels are those of a cut of the whole
volume, and the memory depends only on the size of the blocks. This volume is small, but everything
is done as for a large one.
"""

# %%
# The volume has synthetic nuclei: ellipsoids of different brightness, blurred, with noise. As in
# many microscopes, voxels are twice as long in depth. A few voxels are marked: the centres of six
# nuclei and some voxels far from all.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import zarr
from scipy.ndimage import gaussian_filter

import setwise as sw

rng = np.random.default_rng(4)
shape, spacing = (40, 120, 120), (2.0, 1.0, 1.0)
places = np.stack(np.indices(shape), axis=-1) * spacing
distance, image = np.full(shape, np.inf), np.full(shape, 30.0)
centers = rng.uniform(0, 1, (40, 3))
centers[:6] = 0.15 + 0.7 * centers[:6]  # the nuclei with seeds
centers *= np.array(shape) * spacing
for center in centers:
    own = np.linalg.norm((places - center) / rng.uniform(7, 13, 3), axis=-1)
    image[own < 1] = rng.uniform(100, 150)
    distance = np.minimum(distance, own)
truth = distance < 1
image = gaussian_filter(image, (0.5, 1.0, 1.0)) + 18 * rng.standard_normal(shape)
image = np.clip(image, 0, 255).astype(np.uint8)
seeds = np.full(shape, -1, np.int8)
for center in centers[:6]:
    z, y, x = (center / spacing).astype(int)
    seeds[z, y - 2 : y + 3, x - 2 : x + 3] = 1
seeds[(distance > 1.6) & (rng.random(shape) < 0.002)] = 0

# %%
# Image and seeds are written to disk. The labels are written there too, as a group that viewers for
# OME-Zarr open. The colours of both labels are learned once from the seeds, and the weights of
# edges fall with the contrast of the image; both are computed where a block is read.

folder = Path(tempfile.mkdtemp())
zarr.save_array(folder / "image.zarr", image)
zarr.save_array(folder / "seeds.zarr", seeds)
result = sw.dask.solve_map(
    folder / "image.zarr",
    folder / "labels.zarr",
    kind="image",
    seeds=folder / "seeds.zarr",
    smoothness=4.0,
    spacing=spacing,
    options=sw.dask.VolumeOptions(block=(20, 60, 60)),
)
labels = result.labels[:]
print(result)
overlap = np.count_nonzero(truth & (labels == 1)) / np.count_nonzero(truth | (labels == 1))
print(f"Jaccard index {overlap:.3f}; open after each round: {result.n_open}")

# %%
# The figure shows three slices through a nucleus with seeds. Red dots are the seeds of the nuclei,
# and blue dots those of the background. The dashed lines are the borders of the blocks, which do
# not affect the labels.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.9), width_ratios=[3, 2, 2], layout="constrained")
middle = (centers[2] / spacing).astype(int)
for axis, across in zip(axes, (0, 1, 2), strict=True):
    cut = tuple(middle[k] if k == across else slice(None) for k in range(3))
    rows, columns = (k for k in range(3) if k != across)
    aspect = spacing[rows] / spacing[columns]
    turned = (lambda picture: picture) if across == 0 else np.transpose
    axis.imshow(turned(image[cut]), cmap="gray", aspect=aspect if across == 0 else 1 / aspect)
    axis.contour(turned(labels[cut]), [0.5], colors="gold", linewidths=1.0)
    for label, color in ((0, "deepskyblue"), (1, "red")):
        axis.plot(*np.nonzero(turned(seeds[cut] == label))[::-1], ".", ms=3.5, color=color)
    for border, side in ((shape[columns] // 2, across == 0), (shape[rows] // 2, across != 0)):
        (axis.axvline if side else axis.axhline)(border, color="white", ls="--", lw=0.8)
    if across == 0:
        axis.axhline(shape[rows] // 2, color="white", ls="--", lw=0.8)
    else:
        axis.axhline(shape[columns] // 2, color="white", ls="--", lw=0.8)
    axis.set_title(f"{'zyx'[across]} = {middle[across]}")
    axis.set_axis_off()
plt.show()

# %%
# A stroke changes the labels in a window around it, with a proof. Nothing else is read.

stroke = np.argwhere(np.ones((3, 9, 9))) + np.array([30, 10, 100])
update = result.edit().add_seeds(stroke, 1)
print(update)
