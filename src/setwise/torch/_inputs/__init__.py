"""Readers of the inputs of users: tensors, labels, weights, losses."""
