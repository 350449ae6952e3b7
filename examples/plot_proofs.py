"""
Proofs for many labels
======================

A noisy picture of six textures is labelled by a Potts field. Expansion moves find a good labelling.
The default search goes on from it until the best labelling is found and proved: by a bound from
messages, and by exact searches in windows where these leave a gap. The second panel shows how much
of the picture is easy. For each label, one cut finds pixels that take this label in every best
labelling, whatever the other labels are (Kovtun, 2003). The third panel shows where the best
labelling differs from that of the moves.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

import setwise as sw

# %%
# The field
# ---------
# Costs are whole numbers, so "exact" means that gap and rounding are zero.

rng = np.random.default_rng(0)
shape, n_labels = (64, 96), 6
truth = gaussian_filter(rng.normal(size=(*shape, n_labels)), (8, 8, 0)).argmax(axis=2)
scores = 1.3 * (truth[..., None] == np.arange(n_labels)) + rng.normal(size=(*shape, n_labels))
unary = np.round(1000.0 * (scores.max(axis=2, keepdims=True) - scores)).reshape(-1, n_labels)
edges = sw.fields.grid_edges(shape)
weights = np.round(rng.uniform(200.0, 1600.0, len(edges)))
field = sw.fields.Field(unary) + sw.fields.Potts(edges, weights)

moves = sw.solve_map(field, "expansion", tol=np.inf)
best = sw.solve_map(field)
print(f"energy of the moves {moves.value:.0f}, least energy {best.value:.0f}, gap {best.gap:.0f}")
assert best.exact

# %%
# What single cuts decide
# -----------------------
# Label a against the cheapest other label, with the same weights: pixels that take label a in the
# cut take it in every best labelling.

decided = np.full(len(unary), -1)
for label in range(n_labels):
    others = np.delete(unary, label, axis=1).min(axis=1)
    against = sw.fields.Field(np.stack([others, unary[:, label]], axis=1))
    cut = sw.solve_map(against + sw.fields.Potts(edges, weights))
    decided[cut.labels == 1] = label
is_decided = decided >= 0
assert (best.labels[is_decided] == decided[is_decided]).all()
print(f"decided by {n_labels} cuts: {is_decided.mean():.1%} of the pixels")

# %%
fig, axes = plt.subplots(1, 3, figsize=(11.0, 2.9), layout="constrained")
axes[0].imshow(best.label_image, cmap="tab10", vmin=0, vmax=9)
axes[0].set_title("the best labelling, proved")
axes[1].imshow(is_decided.reshape(shape), cmap="gray", vmin=0, vmax=1)
axes[1].set_title(f"decided by {n_labels} cuts (white): {is_decided.mean():.0%}")
axes[2].imshow((best.labels != moves.labels).reshape(shape), cmap="gray_r", vmin=0, vmax=1)
axes[2].set_title(f"differs from the moves: {(best.labels != moves.labels).sum()} pixels")
for ax in axes:
    ax.axis("off")
