"""The Lovász relaxation of a field, and its minimisation by projected logits."""
