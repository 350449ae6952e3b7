"""Frank-Wolfe methods: only greedy vertices of the base polytope are asked for."""
