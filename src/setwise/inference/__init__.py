"""Inference: the best labelling of a field, its marginals, maximum flows and minimum cuts."""

from setwise.inference._flow_graph import FlowGraph
from setwise.inference._log_partition_gradient import (
    LogPartitionGradient,
    log_partition_gradient,
)
from setwise.inference._marginals import marginals
from setwise.inference._marginals_batch import marginals_batch
from setwise.inference._marginals_result import MarginalsProgress, MarginalsResult
from setwise.inference._maxflow import Flow, maxflow, maxflow_batch
from setwise.inference._result import MapProgress, MapResult
from setwise.inference._solve_map import solve_map

__all__ = [
    "Flow",
    "FlowGraph",
    "LogPartitionGradient",
    "MapProgress",
    "MapResult",
    "MarginalsProgress",
    "MarginalsResult",
    "log_partition_gradient",
    "marginals",
    "marginals_batch",
    "maxflow",
    "maxflow_batch",
    "solve_map",
]
