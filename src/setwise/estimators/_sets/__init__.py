"""Sets of predictions that are judged together."""
