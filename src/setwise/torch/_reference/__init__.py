"""The losses in plain torch on any device: the reference for the kernels."""
