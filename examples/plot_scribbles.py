r"""
Two strokes, a mask, and its proof
==================================

:func:`setwise.images.segment` needs only a photograph and a few strokes. Colours are learned from
the pixels under the strokes, neighbours agree unless the photograph changes between them, and the
best labelling of this field has a lower bound on the energy of all labellings. Attributes of the
result show where it is uncertain, and which alternatives there are.
"""

# %%
# Strokes are an image of integers, with the label where something was drawn and -1 elsewhere. The
# three labels here are the table, the cup with its saucer, and the coffee.

import matplotlib.pyplot as plt
import numpy as np
from skimage import data, draw

import setwise as sw

photograph = data.coffee()[::2, ::2]
strokes = {
    0: [(10, 15, 185, 15), (30, 270, 160, 275)],  # the table
    1: [(110, 55, 165, 110), (165, 110, 165, 190), (105, 110, 125, 160), (45, 95, 75, 97)],
    2: [(75, 125, 80, 165)],  # the coffee
}
scribbles = np.full(photograph.shape[:2], -1)
for label, lines in strokes.items():
    for ends in lines:
        rows, columns = draw.line(*ends)
        for shift in (-1, 0, 1):
            scribbles[rows, columns + shift] = label

found = sw.images.segment(photograph, scribbles)
print(f"energy {found.value:.0f}, no labelling is below {found.bound:.0f}")
print(found.field)

# %%
# ``overlay`` returns a picture as an array, and ``entropy_image`` shows where the labels are
# uncertain: along outlines, and where no stroke says which object a pixel belongs to.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.1), layout="constrained")
axes[0].imshow(found.overlay(opacity=0.0))
axes[0].set_title("strokes")
axes[1].imshow(found.overlay(scribbles=False))
axes[1].set_title(f"labels, {found.result.relative_gap:.1%} left to prove")
axes[2].imshow(found.entropy_image, cmap="inferno", vmin=0, vmax=np.log(3))
axes[2].set_title("entropy")
for axis in axes:
    axis.set_axis_off()
plt.show()

# %%
# A box can replace the strokes. Pixels outside the box do not belong to the object. Inside, colour
# models and labels are estimated in alternation until nothing changes, as in GrabCut.

boxed = sw.images.segment(photograph, boxes=[20, 70, 170, 235])
figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
axes[0].imshow(photograph)
axes[0].add_patch(plt.Rectangle((70, 20), 165, 150, fill=False, color="orange", lw=2))
axes[0].set_title("a box")
axes[1].imshow(np.where(boxed.label_image[..., None] == 1, photograph, photograph // 5))
axes[1].set_title("what is in it: " + ("proved" if boxed.exact else "not proved"))
for axis in axes:
    axis.set_axis_off()
plt.show()
