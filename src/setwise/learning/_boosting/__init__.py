"""Boosting by column generation."""
