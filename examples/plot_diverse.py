r"""
Six ways to cut out a cup
=========================

Two scribbles are ambiguous: they may mean the cup alone, the cup with its coffee, or the cup with
its saucer. Instead of one labelling, :func:`setwise.diverse` returns a list of different labellings
of low energy, and :class:`setwise.plots.DiverseDisplay` shows them side by side.
"""

# %%
# There is one stroke on the cup and one on the table. :func:`setwise.images.field_from_image`
# learns colours from them and joins neighbours by contrast-sensitive edges.

import matplotlib.pyplot as plt
import numpy as np
from skimage import data, draw, transform

import setwise as sw

shape = (106, 160)
photograph = transform.resize(data.coffee(), shape, anti_aliasing=True)
scribbles = np.full(shape, -1)
for label, ends in ((1, (40, 64, 70, 80)), (0, (3, 6, 84, 14))):
    y, x = draw.line(*ends)
    for shift in (-1, 0, 1):
        scribbles[y, x + shift] = label
field = sw.images.field_from_image(photograph, scribbles)

# %%
# Without any settings, every two of the six labellings differ visibly, in at least 3 % of the
# pixels. Each is the best labelling under some bias for or against the object, which a cut proves.

six = sw.diverse(field, 6)
print(six.reason)

# %%
# The pixels in which a labelling differs from the first are outlined. The title describes the
# change in words, with its cost in energy.

drawn = photograph.copy()
drawn[scribbles == 1], drawn[scribbles == 0] = (1.0, 0.5, 0.0), (0.0, 0.7, 1.0)
display = sw.plots.DiverseDisplay.from_result(
    six, image=drawn, colors=[(0, 0, 0, 0.75), (0, 0, 0, 0)], alpha=1.0
)
for k, change in enumerate(display.changes[1:], start=2):
    print(f"{k}: {change}")

# %%
# The list can also be combined into one answer. The probability of a pixel is the share of the
# biases for which it is in the set, and :func:`setwise.decide` returns the set of least
# expected Jaccard loss.

answer = sw.decide(six.probabilities, "jaccard")
_, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
axes[0].imshow(six.probability_image, cmap="gray")
axes[0].set_title("share of the biases")
axes[1].imshow(np.where(answer.mask.reshape(shape)[..., None], photograph, 0.2))
axes[1].set_title("least expected Jaccard loss")
for ax in axes:
    ax.set_axis_off()
plt.show()
