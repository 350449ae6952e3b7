"""Scores: the sets of predictions that share a loss, and scorers."""
