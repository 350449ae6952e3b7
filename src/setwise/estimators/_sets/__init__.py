"""Classifiers for sets of predictions that share one loss."""
