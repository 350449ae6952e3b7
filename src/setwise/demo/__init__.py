"""A report in pictures: ``python -m setwise.demo --out out``."""

from setwise.demo._report import write_report

__all__ = ["write_report"]
