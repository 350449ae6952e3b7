r"""
Answers on a budget
===================

With ``time_limit``, :func:`setwise.solve_map` stops after the given number of seconds and returns
the best labelling found so far, with a valid bound. At any limit, the difference between its energy
and the bound is the largest possible distance to the optimum.
"""

# %%
# The example labels a noisy photograph with eight of its own colours. Each pixel prefers the
# colours near its own, and neighbours prefer to agree, less so across the edges of the photograph.

import matplotlib.pyplot as plt
import numpy as np
from skimage import color, data, filters, transform
from sklearn.cluster import KMeans

import setwise as sw

shape = (192, 192)
photograph = transform.resize(data.astronaut()[:300, 90:390], shape, anti_aliasing=True)
rng = np.random.default_rng(0)
noisy = np.clip(photograph + 0.15 * rng.normal(size=photograph.shape), 0, 1)
blurred = color.rgb2lab(filters.gaussian(noisy, 1.5, channel_axis=2))
centers = KMeans(8, n_init=2, random_state=0).fit(blurred.reshape(-1, 3)[::7]).cluster_centers_
pixels = color.rgb2lab(noisy).reshape(-1, 3)
unary = ((pixels[:, None] - centers) ** 2).sum(axis=2) / 600
edges = sw.fields.grid_edges(shape)
field = sw.fields.Field(unary) + sw.fields.Potts(
    edges, 2.0 * sw.fields.contrast_weights(blurred, edges)
)

# %%
# First we record a long run: a callback stores the value, the bound and the seconds of each round.
# The curve begins with the answer of a time limit of zero, and ends after at most three seconds.

start = sw.solve_map(field, "messages", time_limit=0.0)
rounds = [(0.03, start.value, start.bound)]
full = sw.solve_map(
    field,
    "messages",
    tol=1e-4,
    time_limit=3.0,
    callback=lambda now: rounds.append((now.seconds, now.value, now.bound)),
)
rounds.append((sum(full.timings.values()), full.value, full.bound))
seconds, values, bounds = np.array(rounds).T
print(f"{full.n_iter} rounds, {full.relative_gap:.2%} left to prove; {full.reason}")
print({part: f"{spent:.3f} s" for part, spent in full.timings.items()})

# %%
# Then we try three budgets. The answers depend on the speed of the machine, but every value is
# above every bound.

budgets = (0.0, 0.2, 1.0)
answers = [sw.solve_map(field, "messages", tol=1e-4, time_limit=budget) for budget in budgets]
for budget, best in zip(budgets, answers, strict=True):
    print(f"{budget} s: energy {best.value:.0f}, none below {best.bound:.0f}; {best.reason}")

# %%
# At the top, the value falls and the bound rises, and the energy of the best labelling lies between
# them. At the bottom, the figure shows the labelling of each budget.

hues = ("#d95f02", "#7570b3", "#1b9e77")
palette = np.clip(color.lab2rgb(centers[None])[0], 0, 1)
plt.rcParams["font.size"] = 13
figure = plt.figure(figsize=(9, 7), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=(1.05, 1))
axis = top.subplots()
axis.step(seconds, values, where="post", color="k", lw=2.5, label="the best labelling so far")
axis.step(seconds, bounds, where="post", color="#888888", lw=2.5, label="no labelling is below")
axis.fill_between(seconds, values, bounds, step="post", color="#f2e6c9", label="not yet known")
for budget, hue in zip(budgets[1:], hues[1:], strict=True):
    axis.axvline(budget, ymax=0.65, color=hue, lw=2.5, ls="--")
    axis.text(budget, 0.03, f" {budget:g} s", color=hue, transform=axis.get_xaxis_transform())
axis.set(xlabel="seconds", ylabel="energy", xscale="log", xlim=(0.03, max(3.0, seconds[-1])))
axis.set_xticks((0.03, 0.1, 0.3, 1, 3), ("0.03", "0.1", "0.3", "1", "3"))
axis.minorticks_off()
margin = 0.1 * (values[1] - bounds[1])
axis.set_ylim(bounds[1] - margin, values[1] + margin)
axis.spines[["top", "right"]].set_visible(False)
axis.legend(loc="upper right", frameon=False)
for axis, budget, best, hue in zip(bottom.subplots(1, 3), budgets, answers, hues, strict=True):
    axis.imshow(palette[best.labels].reshape(*shape, 3), interpolation="nearest")
    axis.set_title(f"{budget:g} s: {best.relative_gap:.1%} unproved", color=hue, fontsize=15)
    axis.set_axis_off()
plt.show()
