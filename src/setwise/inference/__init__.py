"""Inference: best labellings of a field, its marginals, diverse lists; flows and cuts."""

from setwise.inference._diverse import diverse
from setwise.inference._diverse_result import DiverseProgress, DiverseResult, Guarantee
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
    "DiverseProgress",
    "DiverseResult",
    "Flow",
    "FlowGraph",
    "Guarantee",
    "LogPartitionGradient",
    "MapProgress",
    "MapResult",
    "MarginalsProgress",
    "MarginalsResult",
    "diverse",
    "log_partition_gradient",
    "marginals",
    "marginals_batch",
    "maxflow",
    "maxflow_batch",
    "solve_map",
]
