"""Labellings drawn from the distribution of a field."""
