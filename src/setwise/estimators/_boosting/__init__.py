"""Boosted classifiers and rankers."""
