"""Fitted ensembles with fewer trees."""
