"""Messages in a factor graph, and the bound of their dual."""
