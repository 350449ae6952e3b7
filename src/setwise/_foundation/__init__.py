"""The floor: arguments, immutability, randomness, threads, interrupts, limits, certificates."""
