"""The numbers that set functions are made of, and what rounding does to them."""
