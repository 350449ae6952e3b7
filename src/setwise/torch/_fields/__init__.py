"""Random fields as layers: how tensors are read as fields, who solves them, what comes back."""
