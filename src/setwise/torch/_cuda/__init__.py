"""CUDA kernels; what is not here runs in plain torch."""
