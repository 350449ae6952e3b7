"""Kernels for fields on grids: bounds on log Z by projection, with regions, and by trees."""
