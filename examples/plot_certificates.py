r"""
Proved best, whatever the constant, the unit and the seeds
==========================================================

A mask comes with a proof: the energy of the labelling and a lower bound on the energy of all
labellings. The certificate must not depend on the unit of the energies or on added constants. Here
one photograph is segmented with hard seeds, and its certificate is compared across units and
constants.
"""

# %%
# The photograph shows a coin. The field has two grey levels, and neighbours prefer to agree. The
# seeds are costs of :math:`10^{17}`: they enforce label 1 inside the coin and label 0 at the border
# of the picture.

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import setwise as sw

image = data.coins()[164:230, 185:245] / 255.0
shape = image.shape
rows, columns = np.indices(shape)
inside = (abs(rows - 30) < 3) & (abs(columns - 34) < 12)
outside = (rows < 2) | (columns < 2) | (rows >= shape[0] - 2) | (columns >= shape[1] - 2)

unary = np.stack([(image - 0.22) ** 2, (image - 0.62) ** 2], axis=-1).reshape(-1, 2)
unary[inside.ravel(), 0] = unary[outside.ravel(), 1] = 1e17
edges = sw.fields.grid_edges(shape)
weights = 0.3 * sw.fields.contrast_weights(image[..., None], edges)

best = sw.solve_map(sw.fields.Field(unary) + sw.fields.Potts(edges, weights))
print(f"{best.method}: energy {best.value:.4f}, no labelling below {best.bound:.4f}")
print(f"proved best: {best.exact}")

# %%
# With five grey levels instead of two, a single cut proves nothing. The relaxation finds labellings
# and bounds that approach each other. The relative gap is the same in every unit and with every
# constant, and so is the round in which the answer is reported as exact.

greys = np.linspace(0.1, 0.8, 5)
# Multiples of 1/1024: adding 1e9 is exact.
distances = np.round(1024 * abs(image.reshape(-1, 1) - greys)) / 1024
versions = {"as it is": (1.0, 0.0), "times $2^{-40}$": (2.0**-40, 0.0), "plus $10^9$": (1.0, 1e9)}
curves = {}
for name, (unit, constant) in versions.items():
    field = sw.fields.Field(unit * distances + constant)
    field += sw.fields.Potts(edges, unit * weights)
    rounds: list[float] = []
    final = sw.solve_map(
        field,
        "convex",
        max_iter=200,
        callback=lambda now, r=rounds: r.append(now.value - now.bound),
    )
    curves[name] = np.array(rounds) / unit
    print(f"{name}: relative gap {final.relative_gap:.3e}, exact {final.exact}")

# %%
# The orange curve below is the gap divided by the absolute value of the energy. With an added
# constant of :math:`10^9` this quotient is below :math:`10^{-9}` from the start, so it proves
# nothing.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
left.imshow(image, cmap="gray")
left.contour(best.labels.reshape(shape), [0.5], colors="#d95f02", linewidths=2)
left.contour(inside, [0.5], colors="#1b9e77", linewidths=1)
left.set_title(f"seeds at a price of $10^{{17}}$\nenergy {best.value:.3f}, exact: {best.exact}")
left.set_axis_off()
for k, (name, gaps) in enumerate(curves.items()):
    style = {"lw": 5 - 2 * k, "ls": ["-", "-", "--"][k], "color": ["#bbbbbb", "#7570b3", "k"][k]}
    right.semilogy(np.maximum(gaps, 1e-8), label=name, **style)
naive = curves["as it is"] / (1e9 * image.size)
right.semilogy(np.maximum(naive, 1e-18), color="#d95f02", label="gap / |value|, plus $10^9$")
right.axhline(1e-9, color="#d95f02", lw=0.8, ls=":")
right.set_xlabel("stage of the relaxation")
right.set_ylabel("gap, in the first unit")
right.set_title("five greys: the gap in three units")
right.legend(loc="lower left", fontsize=8)
plt.show()
