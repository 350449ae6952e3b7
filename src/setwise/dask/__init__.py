"""The same estimators and maps over many machines, with dask."""

from setwise.dask._dask_field_svm import DaskFieldSVM
from setwise.dask._dask_set_classifier import DaskSetClassifier
from setwise.dask._dask_struct_boost_classifier import DaskStructBoostClassifier
from setwise.dask._dask_struct_boost_ranker import DaskStructBoostRanker
from setwise.dask._executor import DaskExecutor
from setwise.dask._field_results import FieldResults, FieldRow
from setwise.dask._map_fields import FieldMap, map_fields

__all__ = [
    "DaskExecutor",
    "DaskFieldSVM",
    "DaskSetClassifier",
    "DaskStructBoostClassifier",
    "DaskStructBoostRanker",
    "FieldMap",
    "FieldResults",
    "FieldRow",
    "map_fields",
]
