"""Two labels on grids larger than memory: blocks on disk, solved by threads or by a cluster."""
