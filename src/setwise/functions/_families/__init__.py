"""The families of set functions."""
