"""Branch and bound, and the windows to which it is confined."""
