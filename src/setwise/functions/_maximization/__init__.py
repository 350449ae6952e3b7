"""Maximisation of submodular functions, with its bound."""
