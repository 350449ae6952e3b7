"""Shared basics: arguments, base classes, certificates, searches and their limits, threads."""
