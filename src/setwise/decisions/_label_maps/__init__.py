"""Label maps: decisions for elements that have one class each."""
