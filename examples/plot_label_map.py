r"""
Decide a label map instead of taking the argmax
===============================================

Semantic segmentation gives each pixel the most probable class. That maximises the expected number
of right pixels, but rare classes then lose most of their pixels, and the mean IoU over the classes
is low. With ``classes="exclusive"``, :func:`setwise.decide` returns the label map with the best
expected mean IoU that it finds, and a bound on that of every other map.
"""

# %%
# Probabilities and a truth
# -------------------------
#
# Smooth scores, with a bias for each class, give the probabilities of six classes and a background.
# The truth is drawn from them, as the largest of the scores plus Gumbel noise. Since the noise is
# smooth too, neighbouring pixels mostly have the same class.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from scipy.ndimage import gaussian_filter
from scipy.special import softmax
from scipy.stats import norm

import setwise as sw

rng = np.random.default_rng(0)
shape, n_classes = (160, 240), 7


def smooth_noise(width):
    """Return standard normal noise (C, H, W), correlated over ``width`` pixels."""
    noise = rng.normal(size=(n_classes, *shape))
    return 2 * np.sqrt(np.pi) * width * gaussian_filter(noise, (0, width, width), mode="wrap")


biases = np.array([5.0, 1.5, 1.0, 0.5, 0.0, -0.5, -1.0])
scores = biases[:, None, None] + 1.7 * smooth_noise(8.0)
p = softmax(scores, axis=0)
truth = np.argmax(scores - np.log(-norm.logcdf(smooth_noise(4.0))), axis=0)
shares = np.bincount(truth.ravel(), minlength=n_classes) / truth.size

# %%
# Two label maps
# --------------
#
# The axis of the classes comes second, as in networks. ``expected`` is the mean over the classes of
# the expected Jaccard loss, for independent pixels, and no label map has less than ``bound``.

likely = p.argmax(axis=0)
best = sw.decide(p[None], "jaccard", classes="exclusive")
print(best)
print(f"no label map has a mean IoU of more than {1 - best.bound:.3f} in expectation")


def iou(labels):
    """Return the IoU of each class."""
    pairs = [(labels == c, truth == c) for c in range(n_classes)]
    return np.array([(found & right).sum() / (found | right).sum() for found, right in pairs])


answers = {"argmax": likely, "sw.decide": best.labels[0]}
found = {name: iou(labels) for name, labels in answers.items()}
for name, labels in answers.items():
    right = np.mean(labels == truth)
    print(f"{name}: mean IoU {found[name].mean():.3f}, {right:.1%} of the pixels are right")

# %%
# The picture
# -----------
#
# The decided map gives more pixels to rare classes, at the price of some errors on the background.

hues = ListedColormap(["#efefef", *(plt.get_cmap("Dark2")(k) for k in range(n_classes - 1))])
plt.rcParams["font.size"] = 13
figure, axes = plt.subplots(2, 2, figsize=(10.5, 7.4), layout="constrained")
maps = {"truth": truth}
maps |= {f"{name}: mean IoU {found[name].mean():.2f}": answers[name] for name in answers}
for axis, (title, labels) in zip(axes.flat, maps.items(), strict=False):
    axis.imshow(labels, cmap=hues, vmin=0, vmax=n_classes - 1, interpolation="nearest")
    axis.set_title(title)
    axis.set_axis_off()
bars = axes[1, 1]
for k, (name, values) in enumerate(found.items()):
    hue = ("#999999", "#d95f02")[k]
    bars.bar(np.arange(n_classes) + 0.4 * k, values, 0.4, label=name, color=hue)
bars.set_xticks(np.arange(n_classes) + 0.2, [f"{share:.1%}" for share in shares], rotation=45)
bars.set(title="IoU of the classes", xlabel="share of the pixels")
bars.spines[["top", "right"]].set_visible(False)
bars.legend(frameon=False)
plt.show()
