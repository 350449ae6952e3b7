"""The potentials of a field."""
