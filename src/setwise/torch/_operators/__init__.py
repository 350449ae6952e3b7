"""The losses as custom operators, and their derivatives."""
