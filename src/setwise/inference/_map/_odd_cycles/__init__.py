"""The best labelling of two labels by a linear program with odd-cycle inequalities."""
