r"""
A submodular and a supermodular part
====================================

Any loss is a sum :math:`l = f + g` with f submodular and g supermodular and increasing. There are
many such sums; the operator D of the B_D paper takes the one with the smallest g. The decomposed
hinge is the Lovász hinge of f plus slack rescaling of g. It is convex for every loss, and equal to
the loss at the corners of the unit cube if f is nowhere negative.

This is Figure 3 of that paper: four losses of k mistakes in a track of ten frames, equations (33)
to (36), as in the authors' code and normalised by the length of the track. The paper draws l in
red, f in blue and g in green; the colours here are close to those and safe for colour-blind
readers.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np

import setwise as sw

fig, axes = plt.subplots(2, 2, figsize=(9.6, 6.8), sharex=True, sharey=True, layout="constrained")
for kind, ax in enumerate(axes.flat, start=1):
    sw.plots.DecompositionDisplay.from_loss(sw.losses.FaceTrack(kind), 10, ax=ax)
    ax.set_title(f"loss {kind}, equation ({32 + kind})", fontsize=10)
    ax.label_outer()
    if kind > 1:
        ax.get_legend().remove()

# %%
# f is non-negative for the first two losses, so their decomposed hinge is an extension. It is
# negative somewhere for the last two: the hinge is still convex, but lies above the loss at some
# corner, and warns about this when it is used. ``properties`` reports it in advance.

y = np.ones(10)
for kind in (1, 2, 3, 4):
    known = sw.surrogates.DecomposedHinge(sw.losses.FaceTrack(kind)).properties(y)
    print(f"loss {kind}: convex {known.is_convex}, extension {known.is_extension}")

# %%
# For a function of the number of mistakes the decomposition has a closed form: g starts with 0, 0,
# and its second differences are the positive ones of l.

f, g = sw.functions.decompose(sw.losses.FaceTrack(1).set_function(y))
bends = np.diff(sw.losses.FaceTrack(1).set_function(y).values, 2)
assert np.allclose(np.diff(g.values, 2), np.maximum(bends, 0.0))
