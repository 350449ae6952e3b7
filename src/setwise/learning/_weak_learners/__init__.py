"""Weak learners, and the searches for the best one."""
