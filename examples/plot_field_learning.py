r"""
Learning a field
================

The unaries of single pixels are seldom reliable, so neighbouring pixels should influence each
other. :class:`setwise.FieldSVM` and :class:`setwise.FieldBoost` learn the unaries and the weights
of the neighbours from labelled images, with one minimum cut per image and round.
"""

# %%
# Each image contains one blob. Its pixels are *far from grey*, light or dark, so no linear score of
# the measurement finds it, and all measurements are noisy. Edges between pixels have two features:
# a constant, and the similarity of their ends in a second, less noisy measurement.

import matplotlib.pyplot as plt
import numpy as np

import setwise as sw

shape = (28, 28)
edges = sw.fields.grid_edges(shape)
rows, columns = np.indices(shape)


def sample(rng):
    angle = np.arctan2(rows - 14 - rng.normal(0, 2), columns - 14 - rng.normal(0, 2))
    distance = np.hypot(rows - 14, columns - 14)
    inside = distance < 7 + 2 * np.sin(rng.integers(2, 5) * angle + rng.uniform(0, 6))
    shade = 1.6 * rng.choice([-1, 1], shape) * inside + 0.8 * rng.normal(size=shape)
    texture = inside + 0.35 * rng.normal(size=shape)
    a, b = texture.ravel()[edges].T
    nodes = shade.reshape(-1, 1)
    pairs = np.column_stack([np.ones(len(edges)), np.exp(-((a - b) ** 2) / 0.2)])
    return (nodes, edges, pairs), inside.ravel().astype(int)


rng = np.random.default_rng(0)
X, Y = zip(*(sample(rng) for _ in range(20)), strict=True)
X_test, Y_test = zip(*(sample(rng) for _ in range(10)), strict=True)

# %%
# Both problems are convex and the cuts are exact, so the gap is a certificate. The linear field
# cannot do better than to predict background everywhere. The boosted field learns a stump on each
# side of grey. It also learns which neighbours are likely to have the same label.

linear = sw.FieldSVM(C=0.1).fit(X, Y)
boosted = sw.FieldBoost(C=1.0, n_estimators=100).fit(X, Y)
for model in (linear, boosted):
    alone = np.concatenate(model.decision_function(X_test)) > 0
    print(
        f"{type(model).__name__}: {model.score(X_test, Y_test):.3f} of the pixels right, "
        f"{np.mean(alone == np.concatenate(Y_test)):.3f} without neighbours; "
        f"relative gap {model.gap_:.1e} after {model.n_iter_} rounds"
    )
print("weights of the edge features:", linear.edge_coef_.round(2))
print("shares of the features, node and edge:", boosted.feature_importances_.round(2))

# %%
# A learnt field gives more than the best labels: its marginals show where other labels would cost
# little.

x, truth = X_test[2], Y_test[2]
field = boosted.to_field(x)
post = sw.marginals(field)
pictures = {
    "measurement": x[0][:, 0],
    "truth": truth,
    "FieldSVM": linear.predict([x])[0],
    "FieldBoost,\nnodes alone": boosted.decision_function([x])[0] > 0,
    "FieldBoost": boosted.predict([x])[0],
    "its marginals": post.probabilities[:, 1],
}
figure, axes = plt.subplots(1, 6, figsize=(12, 2.6), layout="constrained")
for axis, (name, values) in zip(axes, pictures.items(), strict=True):
    axis.imshow(values.reshape(shape), cmap="gray")
    axis.set_title(name, fontsize=10)
    axis.axis("off")
plt.show()

# %%
# Edges connect neighbours only. A fourth entry of a graph names *regions*, here materials that are
# scattered over the image: in each image half of the materials are the object, and the measurement
# of each pixel is very noisy. A region has a cost for each pixel outside its most common label, up
# to a share of them. The weight of this cost is learnt with the other weights.


def patches(rng, n_materials=6):
    seeds = rng.uniform(0, 28, (40, 2))
    pixels = np.column_stack([rows.ravel(), columns.ravel()])
    nearest = ((pixels[:, None] - seeds) ** 2).sum(axis=2).argmin(axis=1)
    material = rng.integers(0, n_materials, 40)[nearest]
    truth = rng.permutation(np.arange(n_materials) % 2)[material]
    nodes = (2 * truth - 1 + 2.5 * rng.normal(size=truth.shape))[:, None]
    return (nodes, edges, np.ones((len(edges), 1)), material), truth


X, Y = zip(*(patches(rng) for _ in range(20)), strict=True)
X_test, Y_test = zip(*(patches(rng) for _ in range(10)), strict=True)
near, near_test = ([x[:3] for x in part] for part in (X, X_test))
local = sw.FieldSVM(C=0.1).fit(near, Y)
regional = sw.FieldSVM(C=0.1).fit(X, Y)
print(
    f"edges: {local.score(near_test, Y_test):.3f} of the pixels right; edges and regions: "
    f"{regional.score(X_test, Y_test):.3f}, weight of a region {regional.region_coef_[0]:.2f}"
)
pictures = {
    "measurement": X_test[0][0][:, 0],
    "regions": X_test[0][3],
    "truth": Y_test[0],
    "edges": local.predict(near_test[:1])[0],
    "edges and regions": regional.predict(X_test[:1])[0],
}
figure, axes = plt.subplots(1, 5, figsize=(10, 2.4), layout="constrained")
for axis, (name, values) in zip(axes, pictures.items(), strict=True):
    axis.imshow(values.reshape(shape), cmap="tab10" if name == "regions" else "gray")
    axis.set_title(name, fontsize=10)
    axis.axis("off")
plt.show()
