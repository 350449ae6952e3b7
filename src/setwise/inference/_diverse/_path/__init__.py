"""The nested labellings of two labels along a bias."""
