"""The operator D."""
