"""A report in pictures: ``python -m setwise.demo --out out``.

Python imports this before ``__main__``, so that nothing here may need what the extra brings.
"""
