"""Marginals and bounds of functions of counts without relaxation."""
