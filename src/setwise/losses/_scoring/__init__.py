"""Which predictions are judged together, and how well they do."""
