"""Inference: best labellings of a field, its marginals, diverse lists; flows and cuts."""

from setwise.inference._calibration._calibrated import CalibrationProgress, TemperatureCalibration
from setwise.inference._calibration._reliability import Reliability, reliability
from setwise.inference._diverse._oracle_accuracy import oracle_accuracy
from setwise.inference._diverse._path._bias_path import bias_path
from setwise.inference._diverse._path._nested_path import BiasPath
from setwise.inference._diverse._result import DiverseProgress, DiverseResult, Guarantee
from setwise.inference._diverse._tuning import TuningProgress, TuningResult, tune_diversity
from setwise.inference._flows._flow_graph import FlowGraph
from setwise.inference._flows._maxflow import Flow, maxflow, maxflow_batch
from setwise.inference._map._result import MapProgress, MapResult
from setwise.inference._marginals._batch import marginals_batch
from setwise.inference._marginals._gradient import (
    LogPartitionGradient,
    log_partition_gradient,
)
from setwise.inference._marginals._result import MarginalsProgress, MarginalsResult
from setwise.inference._sampling._result import Samples

__all__ = [
    "BiasPath",
    "CalibrationProgress",
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
    "Reliability",
    "Samples",
    "TemperatureCalibration",
    "TuningProgress",
    "TuningResult",
    "bias_path",
    "log_partition_gradient",
    "marginals_batch",
    "maxflow",
    "maxflow_batch",
    "oracle_accuracy",
    "reliability",
    "tune_diversity",
]
