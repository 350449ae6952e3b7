"""Marginals and bounds with functions of counts, which are not relaxed."""
