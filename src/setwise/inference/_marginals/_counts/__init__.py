"""Functions of counts, summed as they are."""
