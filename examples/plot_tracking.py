r"""
A tracker that says when it has lost its target
===============================================

``StructBoostTracker`` follows a box. It scores boxes with a sum of stumps, which is trained with
the overlap of boxes, the measure of trackers. Here a textured patch moves over a moving background
and passes behind a wall, where it is invisible for a while.
"""

# %%
# There are forty frames. The patch moves to the right, and the wall does not move.

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

import setwise as sw

rng = np.random.default_rng(1)


def texture(height, width, low, high, coarse):
    noise = gaussian_filter(rng.normal(size=(height, width)), coarse)
    return low + (high - low) * (noise - noise.min()) / np.ptp(noise)


ground, patch = texture(120, 260, 0, 255, 2.5), texture(32, 28, 0, 255, 2.0)
wall = texture(120, 50, 90, 130, 6.0)
frames, boxes = [], []
for t in range(40):
    frame = ground[:, t : t + 180].copy()
    x, y = min(8 + 4 * t, 148), int(44 + 20 * np.sin(t / 5))
    frame[y : y + 32, x : x + 28] = patch
    frame[:, 70:120] = wall
    frame += rng.normal(0, 4, frame.shape)  # camera noise
    frames.append(np.clip(frame, 0, 255).astype(np.uint8))
    boxes.append((x, y, 28, 32))

# %%
# ``start`` takes the box of the first frame, and ``update`` takes the boxes of the next four,
# because one frame is too little to learn from. After that, ``update`` finds the boxes. ``state_``
# and ``confidence_`` show how reliable the answer is. Since the patch does not change its
# appearance, the threshold of the confidence, ``unsure_below``, is higher than the default here.
# This prevents the tracker from learning from frames in which the wall covers a part of the patch.

tracker = sw.StructBoostTracker(n_candidates=800, search_radius=0.35, unsure_below=0.75, patience=3)
tracker.start(frames[0], boxes[0])
path, states, confidence = [np.array(boxes[0])], ["following"], [1.0]
scored = {}
grid = np.array([(x, y, 28, 32) for y in range(0, 89, 2) for x in range(0, 153, 2)], dtype=float)
shown = (6, 20, 38)
for t, frame in enumerate(frames[1:], start=1):
    path.append(tracker.update(frame, boxes[t] if t < 5 else None))
    states.append(tracker.state_)
    confidence.append(tracker.confidence_)
    if t in shown:
        scored[t] = tracker.score_boxes(frame, grid).reshape(45, 77)

# %%
# The top row shows the box (solid) and the truth (dashed). The middle row shows the scores of all
# boxes of that size at their centres. The bottom row shows the confidence and the state over time.
# Behind the wall the tracker does not learn and the box stays; when the patch reappears, the search
# over the whole frame finds it.

colors = {"following": "tab:green", "unsure": "tab:orange", "lost": "tab:red"}
figure, axes = plt.subplot_mosaic(
    [["a", "b", "c"], ["d", "e", "f"], ["t", "t", "t"]],
    figsize=(9.6, 6.6),
    height_ratios=(1.0, 1.0, 0.7),
    layout="constrained",
)
for above, below, t in zip("abc", "def", shown, strict=True):
    axes[above].imshow(frames[t], cmap="gray", vmin=0, vmax=255)
    for box, color, style in ((boxes[t], "white", "--"), (path[t], colors[states[t]], "-")):
        axes[above].add_patch(
            plt.Rectangle(box[:2], *box[2:], fill=False, ec=color, ls=style, lw=2)
        )
    axes[above].set_title(f"frame {t}: {states[t]}", fontsize=10)
    axes[below].imshow(scored[t], extent=(14, 167, 104, 16), cmap="viridis")
    axes[below].set(xlim=(0, 180), ylim=(120, 0))
    for axis in (axes[above], axes[below]):
        axis.set(xticks=[], yticks=[])
axes["d"].set_ylabel("score, by centre")
for t, state in enumerate(states):
    axes["t"].axvspan(t - 0.5, t + 0.5, color=colors[state], alpha=0.25, lw=0)
axes["t"].plot(confidence, color="black")
axes["t"].axhline(tracker.unsure_below, color="gray", ls=":")
axes["t"].set(xlabel="frame", ylabel="confidence", xlim=(-0.5, 39.5), ylim=(0, 1.05))
handles = [plt.Rectangle((0, 0), 1, 1, color=c, alpha=0.4, label=s) for s, c in colors.items()]
axes["t"].legend(handles=handles, ncols=3, frameon=False, loc="lower left")
for t, state in enumerate(states):
    if t == 0 or state != states[t - 1]:
        print(f"from frame {t}: {state}, confidence {confidence[t]:.2f}")
