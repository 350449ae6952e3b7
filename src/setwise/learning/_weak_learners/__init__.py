"""Weak learners, and how the best is found."""
