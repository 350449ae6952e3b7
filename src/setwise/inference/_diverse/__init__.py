"""Diverse lists of labellings."""
