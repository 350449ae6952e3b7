"""Learners of fields."""
