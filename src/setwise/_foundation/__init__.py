"""The floor: arguments, immutability, randomness, threads, interrupts, certificates."""
