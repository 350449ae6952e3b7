"""The conditioning of a field: constants, unreachable prices, and the rounding of bounds."""
