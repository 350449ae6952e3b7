"""Estimators, maps of fields and cuts of large volumes over many machines, with dask."""

try:
    from setwise.dask._dask_field_svm import DaskFieldSVM
    from setwise.dask._dask_set_classifier import DaskSetClassifier
    from setwise.dask._dask_struct_boost_classifier import DaskStructBoostClassifier
    from setwise.dask._dask_struct_boost_ranker import DaskStructBoostRanker
    from setwise.dask._executor import DaskExecutor
    from setwise.dask._maps._map_fields import map_fields
    from setwise.dask._volumes._solve_map import solve_map
    from setwise.dask._volumes._volume_result import VolumeOptions
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
    "VolumeOptions",
    "map_fields",
    "solve_map",
]
