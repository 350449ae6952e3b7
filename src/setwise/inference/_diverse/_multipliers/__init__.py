"""Functions of Hamming distances by multipliers: labellings, their mixtures, and bounds."""
