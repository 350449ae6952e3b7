"""Marginals and bounds on the partition function."""
