"""The report with pictures that ``make demo`` writes: ``python -m demo --out out``.

Python imports this before ``__main__``, so nothing here may need the packages of the extra.
"""
