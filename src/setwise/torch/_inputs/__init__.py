"""What users pass: tensors, labels, weights, losses."""
