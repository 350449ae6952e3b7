"""Minimisation of submodular functions, with its proof."""
