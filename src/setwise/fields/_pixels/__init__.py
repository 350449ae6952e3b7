"""From pixels to edges, weights and regions."""
