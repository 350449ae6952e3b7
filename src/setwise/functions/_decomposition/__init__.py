"""The operator D, which decomposes a set function into a submodular and a supermodular part."""
