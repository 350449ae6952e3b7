"""Inference: the best labelling of a field, maximum flows and minimum cuts."""

from setwise.inference._flow_graph import FlowGraph
from setwise.inference._maxflow import Flow, maxflow, maxflow_batch
from setwise.inference._result import MapProgress, MapResult
from setwise.inference._solve_map import solve_map

__all__ = [
    "Flow",
    "FlowGraph",
    "MapProgress",
    "MapResult",
    "maxflow",
    "maxflow_batch",
    "solve_map",
]
