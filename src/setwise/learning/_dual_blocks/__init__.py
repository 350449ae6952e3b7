"""The dual of a linear model, block by block."""
