"""Checks of scikit-learn's that are wrong in some version of it.

Before 1.7 the two on sample weights reduce y to two classes after shuffling it, and so fit the
weighted and the repeated samples with different labels.
"""

import sklearn

MISTAKEN = (
    {f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")}
    if sklearn.__version__.startswith("1.6.")
    else set()
)
