"""The calibration of probabilities: reliability, and the temperature that improves it."""
