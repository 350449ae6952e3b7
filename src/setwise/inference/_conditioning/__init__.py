"""The conditioning of a field: constants, huge costs, and the rounding of bounds."""
