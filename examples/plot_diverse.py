r"""
Six ways to cut out a cup
=========================

Two scribbles leave open what is meant: the cup, the cup with its coffee, the saucer too? Instead of
one labelling :func:`setwise.inference.diverse` gives a list, each of low energy and unlike those
before it, and :class:`setwise.plots.DiverseDisplay` shows them side by side.
"""

# %%
# One stroke on the cup, one on the table. How near the colour of a pixel is to the colours under
# each stroke makes the unaries; contrast-sensitive edges join neighbours.

import matplotlib.pyplot as plt
import numpy as np
from skimage import color, data, draw, transform

import setwise as sw

shape = (106, 160)
photograph = transform.resize(data.coffee(), shape, anti_aliasing=True)
lab = color.rgb2lab(photograph)
scribbles = np.full(shape, -1)
for label, ends in ((1, (40, 64, 70, 80)), (0, (3, 6, 84, 14))):
    y, x = draw.line(*ends)
    for shift in (-1, 0, 1):
        scribbles[y, x + shift] = label


def distances(label):
    """To the colours under a stroke: -log of a density of Gaussians around them, and a floor."""
    under = lab[scribbles == label]
    squares = ((lab.reshape(-1, 1, 3) - under) ** 2).sum(axis=2)
    return -np.log(np.exp(-squares / (2 * 12.0**2)).mean(axis=1) + 1e-3)


unary = 0.3 * np.stack([distances(0), distances(1)], axis=1)
unary[scribbles.ravel() == 0, 1] += 100.0
unary[scribbles.ravel() == 1, 0] += 100.0
edges = sw.fields.grid_edges(shape, 8)
field = sw.fields.Field(unary) + sw.fields.Potts(
    edges, 3.0 * sw.fields.contrast_weights(lab, edges)
)

# %%
# A Hamming ball of about 1 / gamma pixels around each labelling is what the next ones keep out of.
# Each step comes with a bound on what any labelling could have done there, hence a gap.

six = sw.diverse(field, 6, sw.diversities.HammingBall(weight=400.0, gamma=0.0005))
for k, (value, gap) in enumerate(zip(six.values, six.gaps, strict=True), start=1):
    print(f"{k}: energy {value:.0f}, at most {gap:.2f} above the best of its step")

# %%
# Outlined: what each changes in the first. The title says what that costs.

drawn = photograph.copy()
drawn[scribbles == 1], drawn[scribbles == 0] = (1.0, 0.5, 0.0), (0.0, 0.7, 1.0)
display = sw.plots.DiverseDisplay.from_result(
    six, shape, image=drawn, colors=[(0, 0, 0, 0.75), (0, 0, 0, 0)], alpha=1.0
)
plt.show()
