"""Shared basics: arguments, immutability, randomness, threads, limits, certificates, searches."""
