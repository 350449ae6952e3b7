"""A picture with strokes on it: its steps, the jobs that compute its mask, and their memory."""
