"""Bounds on the partition function by trees: the upper bound that keeps the pairs, and products."""
