"""Models in the UAI format."""
