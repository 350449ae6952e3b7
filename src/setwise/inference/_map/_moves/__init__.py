"""Moves by graph cuts."""
