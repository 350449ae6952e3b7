"""Inference: best labellings of a field, its marginals, diverse lists; flows and cuts."""

from setwise.inference._baseline_lists import perturbed_list, sampled_list
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
from setwise.inference._oracle_accuracy import oracle_accuracy, oracle_items
from setwise.inference._result import MapProgress, MapResult
from setwise.inference._solve_map import solve_map
from setwise.inference._tune_diversity import TuningProgress, TuningResult, tune_diversity

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
    "TuningProgress",
    "TuningResult",
    "diverse",
    "log_partition_gradient",
    "marginals",
    "marginals_batch",
    "maxflow",
    "maxflow_batch",
    "oracle_accuracy",
    "oracle_items",
    "perturbed_list",
    "sampled_list",
    "solve_map",
    "tune_diversity",
]
