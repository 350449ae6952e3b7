"""The conditioning of a field: constants, costs that nothing pays, and the rounding of bounds."""
