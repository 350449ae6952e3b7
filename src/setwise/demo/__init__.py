"""A report in pictures: ``python -m setwise.demo --out out``."""
