"""Cuts of grids that are edited by strokes, with a proof after each."""
