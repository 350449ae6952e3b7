"""A picture with strokes on it, the jobs that compute its mask, and a budget for their memory."""
