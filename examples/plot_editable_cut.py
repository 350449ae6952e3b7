r"""
A stroke updates a window, with a proof
=======================================

A cut of a whole picture or volume answers one question: which labelling has the least energy? After
a stroke only a few labels change, and :class:`setwise.inference.EditableCut` cuts only a window
around the stroke. If no change of a label reaches the border of the window, the labels are proved
to be those that a cut of the whole would have found.
"""

# %%
# Coins on a cloth. The energy prefers label 1 where a pixel is bright, and equal labels where
# neighbours are alike. The first solution is a cut of the whole.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Rectangle
from skimage import data

import setwise as sw

photograph = data.coins().astype(float)
edges = sw.fields.grid_edges(photograph.shape, connectivity=8)
weights = 4.0 * sw.fields.contrast_weights(photograph, edges, channels=False)
unary = (112.0 - photograph) / 20.0
cut = sw.inference.EditableCut(unary, weights, connectivity=8)
before = cut.labels.copy()
print(cut.certificate())

# %%
# In the upper left corner the cloth is as bright as a coin. A stroke says that it is background.
# The callback is told which windows are cut.

rows, columns = np.indices(photograph.shape)
stroke = (abs(rows - 12) < 4) & (columns > 15) & (columns < 130)
windows = []
update = cut.add_seeds(stroke, 0, callback=lambda progress: windows.append(progress.window))
print(update)

# %%
# Why is this a proof? All voxels outside the window are fixed to the label that the stroke favours,
# here 0. That can only help label 0, so the answer in the window has at least as many zeros as the
# new labels, and they have at least as many as the old ones. Where answer and old label agree, the
# label is decided. The others would be open, but those that no chain of changes joins to the stroke
# are zero only because of the border: their labels stay. The same cut can be made by hand.

window = windows[-1]
tall, wide = (part.stop - part.start for part in window)
inside = sw.fields.grid_edges((tall, wide), connectivity=8)
nearby = 4.0 * sw.fields.contrast_weights(
    photograph[window],
    inside,
    channels=False,
    beta=1 / (2 * np.mean(np.square(np.diff(photograph.ravel()[edges], axis=1)))),
)
by_hand = sw.inference.EditableCut(unary[window], nearby, connectivity=8)
rim = np.ones((tall, wide), bool)
rim[
    slice(int(window[0].start > 0), tall - int(window[0].stop < photograph.shape[0])),
    slice(int(window[1].start > 0), wide - int(window[1].stop < photograph.shape[1])),
] = False
by_hand.add_seeds(rim, 0)
by_hand.add_seeds(stroke[window], 0)

old, new = before[window], cut.labels[window]
fate = np.zeros((tall, wide), int)  # decided
fate[(by_hand.labels != old) & (new == old)] = 1
fate[new != old] = 2

# %%
# On the right, the window: the labels of grey pixels are decided, those of orange ones would depend
# on what is outside and are not joined to the stroke, and blue ones change.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained")
axes[0].imshow(photograph, cmap="gray")
axes[0].contour(before, [0.5], colors="gold", linewidths=0.8)
axes[0].contourf(stroke, [0.5, 1.5], colors=["crimson"])
axes[0].set_title("labels before, and the stroke")
axes[1].imshow(photograph, cmap="gray")
axes[1].contour(cut.labels, [0.5], colors="gold", linewidths=0.8)
for box in windows:
    axes[1].add_patch(
        Rectangle(
            (box[1].start, box[0].start),
            box[1].stop - box[1].start - 1,
            box[0].stop - box[0].start - 1,
            fill=False,
            color="deepskyblue",
        )
    )
axes[1].set_title(f"after it: {update.n_changed} labels changed, proved: {update.proved}")
axes[2].imshow(fate, cmap=ListedColormap(["0.85", "orange", "royalblue"]), vmin=0, vmax=2)
axes[2].contourf(stroke[window], [0.5, 1.5], colors=["crimson"])
axes[2].set_title("decided, open, edited")
for axis in axes:
    axis.set_axis_off()
plt.show()

# %%
# ``undo`` takes the change back without any computation, and a cut of the whole agrees with every
# update.

again = sw.inference.EditableCut(unary, weights, connectivity=8)
again.add_seeds(stroke, 0)
print(np.array_equal(cut.labels, again.labels), cut.replace().n_changed)
