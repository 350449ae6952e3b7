"""Sampling of labellings from the distribution of a field."""
