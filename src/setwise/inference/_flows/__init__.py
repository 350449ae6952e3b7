"""Flows and cuts, and energies of two labels as cuts."""
