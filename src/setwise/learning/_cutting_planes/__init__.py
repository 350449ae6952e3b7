"""Cutting planes for any convex risk."""
