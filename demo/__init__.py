"""A report in pictures, which ``make demo`` writes: ``python -m demo --out out``.

Python imports this before ``__main__``, so that nothing here may need what the extra brings.
"""
