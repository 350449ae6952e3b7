"""Bounds on log Z by trees: tree-reweighted upper bounds, and lower bounds of products of trees."""
