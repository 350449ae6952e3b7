r"""
Probabilities that mean what they say
=====================================

The energies of a field that was not learned have no natural unit, so its marginals may be far too
confident. :func:`setwise.calibrate_temperature` finds the temperature, and the scale of
the unaries, at which the marginals are best on labelled images.
:class:`setwise.plots.ReliabilityDisplay` shows the effect, and :func:`setwise.sample`
draws whole labellings at this temperature.
"""

# %%
# The images contain a few discs and noise. The unaries underestimate the noise, so they are three
# times too confident, and the weights of the pairs are too large in proportion.

import matplotlib.pyplot as plt
import numpy as np

import setwise as sw

shape, rng = (32, 32), np.random.default_rng(0)
rows, columns = np.mgrid[: shape[0], : shape[1]]


def drawn_truth():
    truth = np.zeros(shape, int)
    for label in (1, 2, 1):
        r, c, size = rng.uniform(0, 32), rng.uniform(0, 32), rng.uniform(5, 10)
        truth[(rows - r) ** 2 + (columns - c) ** 2 < size**2] = label
    return truth


edges = sw.fields.grid_edges(shape)
truths = [drawn_truth() for _ in range(10)]
images = [truth + rng.normal(0.0, 0.9, shape) for truth in truths]
fields = [
    sw.fields.Field(3.0 * (image.reshape(-1, 1) - np.arange(3)) ** 2 / (2 * 0.9**2))
    + sw.fields.Potts(edges, 6.0)
    for image in images
]

# %%
# The grid contains temperatures, and scales of the unaries for each temperature. Six images are
# used for the choice and for cross-validation, which estimates the score on new images. Four other
# images are used for the figure. This example sets the method and the grid. By default the method
# is chosen too, and the search is not limited to a grid.

train, test = slice(0, 6), slice(6, 10)
found = sw.calibrate_temperature(
    fields[train],
    truths[train],
    "trees",
    grid={"temperature": [1.0, 3.0, 4.0, 5.0], "scale": [1.0, 1.4]},
    tol=1e-2,
)
before = found.scores[(found.temperatures == 1.0) & (found.scales == 1.0)][0]
print(
    f"temperature {found.temperature:g}, scale of the unaries {found.scale:g}: "
    f"NLL {found.score:.3f}, held out {found.cv_score:.3f}; before {before:.3f}"
)

y = np.stack(truths[test])
said = {
    "unaries": [sw.marginals(sw.fields.Field(f.unary)).probabilities for f in fields[test]],
    "marginals": [sw.marginals(f, tol=1e-2).probabilities for f in fields[test]],
    "calibrated": [found.marginals(f, tol=1e-2).probabilities for f in fields[test]],
}
for name, p in said.items():
    rated = sw.inference.reliability(y, np.stack(p).reshape(*y.shape, 3))
    print(
        f"{name}: accuracy {rated.accuracy:.3f}, ECE {rated.ece:.3f}, Brier {rated.brier:.3f}, "
        f"NLL {rated.nll:.3f}, errors detected {rated.auroc:.3f}"
    )

# %%
# Calibrated probabilities lie on the diagonal, and larger points stand for more pixels. The lower
# row shows an image, its truth, and two samples of the calibrated field. The samples differ where
# the marginals are uncertain, and neighbouring pixels change together.

figure = plt.figure(figsize=(10.5, 7.2), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=(1.25, 1))
for ax, (name, p) in zip(top.subplots(1, 3), said.items(), strict=True):
    probabilities = np.stack(p).reshape(*y.shape, 3)
    sw.plots.ReliabilityDisplay.from_probabilities(y, probabilities, n_bins=10, name=name, ax=ax)

samples = sw.sample(found.scaled(fields[6]), 2, temperature=found.temperature, rng=0)
panels = {
    "image": images[6],
    "truth": truths[6],
    "a sample": samples.label_images[0],
    "another": samples.label_images[1],
}
for ax, (name, picture) in zip(bottom.subplots(1, 4), panels.items(), strict=True):
    ax.imshow(picture, cmap="gray" if name == "image" else "viridis", interpolation="nearest")
    ax.set_title(name)
    ax.set_axis_off()
plt.show()
