"""Random fields as layers of networks."""
