"""The best labelling of a field."""
