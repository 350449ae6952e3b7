r"""
Missing values and categories in a table
========================================

Many tables have categorical columns and missing values. Decision stumps handle both directly: a
stump on a categorical column tests for a subset of the categories, and rows with a missing value go
to the side that fits better. Both searches are exact, so the gap remains a certificate. Here they
are compared with the same booster after the usual preprocessing: an integer code for each category,
and the mean for each missing value.
"""

# %%
# The data
# --------
#
# The rows are days in twelve towns. People swim where the sea is warm and when the sun shines.
# Whether the sea is warm depends on the town, but not on the position of its name in the alphabet.
# On most days without a record of sunshine it was raining.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import setwise as sw

WARM_TOWNS = ["Athens", "Dakar", "Faro", "Haifa", "Jaffa", "Lagos"]
COLD_TOWNS = ["Bergen", "Cork", "Esbjerg", "Gdansk", "Inverness", "Kiel"]
TOWNS = np.array(sorted(WARM_TOWNS + COLD_TOWNS))
WARM = np.isin(TOWNS, WARM_TOWNS)


def draw(n, seed):
    rng = np.random.default_rng(seed)
    town = rng.integers(len(TOWNS), size=n)
    sun = rng.uniform(0, 10, n)
    pleasure = 2.5 * np.where(WARM[town], 1, -1) + (sun - 5) + rng.normal(size=n)
    unread = rng.random(n) < np.where(sun < 4, 0.6, 0.05)
    table = pd.DataFrame(
        {
            "town": pd.Categorical(TOWNS[town], categories=TOWNS),
            "sun": np.where(unread, np.nan, sun),
            "wind": rng.uniform(0, 10, n),
        }
    )
    return table, (pleasure > 0).astype(int)


table, swims = draw(300, 0)
table_test, swims_test = draw(4000, 1)
print(table.head())

# %%
# Two boosters
# ------------
#
# The dtype marks the towns as categories; nothing else is needed.


def repaired(table):
    sun = table["sun"].fillna(table["sun"].mean())
    return table.assign(town=table["town"].cat.codes, sun=sun)


as_they_are = sw.StructBoostClassifier(C=50.0).fit(table, swims)
filled = sw.StructBoostClassifier(C=50.0).fit(repaired(table), swims)
first = as_they_are.estimators_[0]
words = as_they_are.categories_[0]
print("the first stump:", [str(words[int(place)]) for place in first.positive], "against the rest")
print(f"relative gaps: {as_they_are.gap_:.1e} as they are, {filled.gap_:.1e} repaired")

# %%
# The scores and the errors
# -------------------------
#
# The left panel shows the score of each town at five hours of sun, on which both models finally
# agree. With integer codes, a stump can split the towns only in alphabetical order, so the model
# needs one stump for each change between warm and cold towns. With categories a single stump is
# enough. The middle panel shows the scores of a warm and of a cold town, with the score for missing
# sunshine at the left edge. The right panel shows the test error after each stump.

fig, (left, middle, right) = plt.subplots(1, 3, figsize=(12.5, 4), layout="constrained")
same = pd.DataFrame({"town": pd.Categorical(TOWNS, categories=TOWNS), "sun": 5.0, "wind": 5.0})
colors = {"as they are": "#0072B2", "repaired": "#D55E00"}
left.axhline(0, color="0.7", linewidth=1)
left.plot(TOWNS, as_they_are.decision_function(same), "o", color=colors["as they are"])
left.plot(TOWNS, filled.decision_function(repaired(same)), "s", color=colors["repaired"], alpha=0.6)
left.set(title="Score of each town", ylabel="score")
left.tick_params(axis="x", rotation=70)
for tick, warm in zip(left.get_xticklabels(), WARM, strict=True):
    tick.set_fontweight("bold" if warm else "normal")

hours = np.linspace(0, 10, 200)
for town, style in (("Faro", "-"), ("Kiel", "--")):
    days = pd.DataFrame(
        {"town": pd.Categorical([town] * 200, categories=TOWNS), "sun": hours, "wind": 5.0}
    )
    middle.plot(hours, as_they_are.decision_function(days), style, color="#0072B2", label=town)
    unread = as_they_are.decision_function(days[:1].assign(sun=np.nan))
    middle.plot(-2, unread, "o", color="#0072B2", mfc="white" if style == "--" else None)
middle.axvline(-1, color="0.7", linewidth=1)
middle.set_xticks([-2, 0, 5, 10], ["not read", "0", "5", "10"])
middle.set(title="Score by hours of sun, as they are", xlabel="sun")
middle.legend(frameon=False)

for name, model, rows in (
    ("as they are", as_they_are, table_test),
    ("repaired", filled, repaired(table_test)),
):
    errors = [np.mean(said != swims_test) for said in model.staged_predict(rows)]
    right.plot(1 + np.arange(len(errors)), errors, color=colors[name], linewidth=2, label=name)
    used = np.count_nonzero(model.estimator_weights_)
    print(f"{name:12s} {used} stumps, test error {errors[-1]:.3f}")
right.set(title="Error of the test data", xlabel="stages", ylim=(0, None))
right.legend(frameon=False)
for ax in (middle, right):
    ax.grid(alpha=0.25)

# %%
# A town that was not in the training table counts as missing. No town was missing in the training
# table, so the stumps on towns contribute nothing to its score, which depends on sun and wind only:

new = pd.DataFrame({"town": ["Oslo", "Oslo"], "sun": [1.0, 9.0], "wind": [5.0, 5.0]})
print(as_they_are.decision_function(new).round(2))

plt.show()
