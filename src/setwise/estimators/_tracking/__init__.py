"""A boosted tracker of boxes."""
