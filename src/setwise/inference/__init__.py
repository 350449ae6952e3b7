"""Inference: best labellings of a field, its marginals, diverse lists; flows and cuts."""

from setwise.inference._calibration._calibrated import TemperatureCalibration
from setwise.inference._calibration._reliability import reliability
from setwise.inference._diverse._oracle_accuracy import oracle_accuracy
from setwise.inference._diverse._path._bias_path import bias_path
from setwise.inference._diverse._result import DiverseResult
from setwise.inference._diverse._tuning import tune_diversity
from setwise.inference._editing._editable_cut import EditableCut
from setwise.inference._flows._flow_graph import FlowGraph
from setwise.inference._flows._maxflow import maxflow, maxflow_batch
from setwise.inference._map._result import MapResult
from setwise.inference._marginals._batch import marginals_batch
from setwise.inference._marginals._gradient import log_partition_gradient
from setwise.inference._marginals._result import MarginalsResult
from setwise.inference._sampling._result import Samples

__all__ = [
    "DiverseResult",
    "EditableCut",
    "FlowGraph",
    "MapResult",
    "MarginalsResult",
    "Samples",
    "TemperatureCalibration",
    "bias_path",
    "log_partition_gradient",
    "marginals_batch",
    "maxflow",
    "maxflow_batch",
    "oracle_accuracy",
    "reliability",
    "tune_diversity",
]
