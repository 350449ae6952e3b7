r"""
A stroke updates a window, with a proof
=======================================

A cut of a whole picture or volume answers one question: which labelling has the least energy? After
a stroke only a few labels change, and :class:`setwise.inference.EditableCut` cuts only a window
around the stroke. If no change of a label reaches the border of the window, the labels are proved
to be those that a cut of the whole would have found.
"""

# %%
# The photograph shows coins on a cloth. The energy prefers label 1 where a pixel is bright, and
# equal labels where neighbours are alike. The first solution is a cut of the whole image.

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
# In the upper left corner the cloth is as bright as a coin. A stroke marks it as background. The
# callback records the windows that are cut.

rows, columns = np.indices(photograph.shape)
stroke = (abs(rows - 12) < 4) & (columns > 15) & (columns < 130)
windows = []
update = cut.add_seeds(stroke, 0, callback=lambda progress: windows.append(progress.window))
print(update)

# %%
# The cut of the window is a proof for the following reason. For this cut, all pixels outside it are
# fixed to the label that the stroke favours, here 0. This can only increase the set of pixels with
# label 0. So every pixel that is 0 in the best labelling after the stroke is also 0 in this answer,
# and every pixel that was 0 before the stroke stays 0. If a pixel has the same label in the answer
# and before the stroke, its label is therefore decided. The other pixels change from 1 to 0 in the
# answer. Some of them are not connected to the stroke by other such pixels. These change only
# because of the fixed border, so they keep their labels. The next lines make the same cut by hand.

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
# The right panel shows the window. The labels of grey pixels are decided, blue pixels change, and
# orange pixels change in the answer only because of the fixed border, so they keep their labels.

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
# A new ``EditableCut`` with the same stroke has the same labels. ``replace`` solves the whole
# again, and no label changes.

again = sw.inference.EditableCut(unary, weights, connectivity=8)
again.add_seeds(stroke, 0)
print(np.array_equal(cut.labels, again.labels), cut.replace().n_changed)
