"""Whether probabilities are true, and the temperature that makes them so."""
