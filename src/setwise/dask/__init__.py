"""Estimators and maps of fields over many machines, with dask."""

try:
    from setwise.dask._dask_field_svm import DaskFieldSVM
    from setwise.dask._dask_set_classifier import DaskSetClassifier
    from setwise.dask._dask_struct_boost_classifier import DaskStructBoostClassifier
    from setwise.dask._dask_struct_boost_ranker import DaskStructBoostRanker
    from setwise.dask._executor import DaskExecutor
    from setwise.dask._maps._map_fields import map_fields
except ModuleNotFoundError as error:
    missing = (error.name or "").partition(".")[0]
    if missing not in ("dask", "distributed", "zarr"):
        raise
    raise ImportError(
        f"setwise.dask needs {missing}, which is not installed: pip install 'setwise[dask]'"
    ) from error

__all__ = [
    "DaskExecutor",
    "DaskFieldSVM",
    "DaskSetClassifier",
    "DaskStructBoostClassifier",
    "DaskStructBoostRanker",
    "map_fields",
]
