"""The same estimators and maps over many machines, with dask."""

from setwise.dask._dask_set_classifier import DaskSetClassifier
from setwise.dask._executor import DaskExecutor

__all__ = ["DaskExecutor", "DaskSetClassifier"]
