r"""
Masks that contain what they promise
====================================

A best mask does not say how often it is right. :class:`setwise.conformal.ConformalMasks` is
calibrated on labelled images and returns an inner and an outer mask for each new image. Here, on
average, at most 10 % of the object lies outside the outer mask and at most 2 % of the background
lies inside the inner mask. This guarantee holds for any model.
"""

# %%
# The images are simulated: each is a smooth random shape in one colour on a background of another
# colour, with blur and noise. The probabilities are computed from the colours and are
# overconfident.

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.special import expit

import setwise as sw

SHAPE = (48, 64)


def drawn(rng):
    """Return an image (h, w, 3) of bytes and the mask of its object."""
    y, x = np.mgrid[-1 : 1 : SHAPE[0] * 1j, -1 : 1 : SHAPE[1] * 1j]
    shape = gaussian_filter(rng.normal(size=SHAPE), 5) * 12 - 2.5 * (x**2 + y**2) + 0.8
    mask = shape > 0
    colors = np.array([[90, 110, 80], [150, 120, 90]]) + rng.normal(0, 4, (2, 3))
    picture = colors[gaussian_filter(mask.astype(float), 1.5).round().astype(int)]
    return np.clip(picture + rng.normal(0, 25, (*SHAPE, 3)), 0, 255).astype(np.uint8), mask


def field_of(image):
    """Return the field of an image: probabilities from its colours, and a smoothness term."""
    p = expit((image.astype(float) @ [0.6, 0.1, 0.1] - 92) / 9)
    both = np.stack([1 - p, p], axis=-1)
    return sw.images.field_from_image(image, probabilities=both, smoothness=2.0)


rng = np.random.default_rng(0)
images, truths = zip(*(drawn(rng) for _ in range(160)), strict=True)

# %%
# Sixty images determine the levels along the bias path of each image's field. The other hundred
# images are for testing.

model = sw.conformal.ConformalMasks(field_of, alpha={"outer": 0.1, "inner": 0.02})
model.conformalize(images[:60], truths[:60])
print(model.controls_["outer"].words)
found = model.predict_set(images[60:])

missed = [(t & ~m.outer).sum() / max(t.sum(), 1) for m, t in zip(found, truths[60:], strict=True)]
extra = [(m.inner & ~t).sum() / max((~t).sum(), 1) for m, t in zip(found, truths[60:], strict=True)]
print(f"missed by the outer masks: {np.mean(missed):.3f}, asked for at most 0.1")
print(f"background in the inner masks: {np.mean(extra):.3f}, asked for at most 0.02")

# %%
# The inner mask is blue, the band up to the outer mask is orange, and the white line is the truth.
# The guarantee is an average over images. The image on the right has the largest missed share.

worst = int(np.argmax(missed))
fig, axes = plt.subplots(1, 3, figsize=(9, 2.6), layout="constrained")
for ax, k in zip(axes, (0, 1, worst), strict=True):
    ax.imshow(found[k].overlay(images[60 + k]))
    ax.contour(truths[60 + k], [0.5], colors="white", linewidths=1)
    ax.set_title(f"missed: {100 * missed[k]:.0f} %")
    ax.set_axis_off()
plt.show()

# %%
# The levels and the statement of the guarantee are saved in a small JSON file, which another
# process or the command line can load. The function that makes the field is not saved and is passed
# again.

model.save("masks.json")
again = sw.conformal.load("masks.json", field_of)
ours, theirs = (m.predict_set(images[:1])[0].outer for m in (model, again))
print(bool((ours == theirs).all()))
