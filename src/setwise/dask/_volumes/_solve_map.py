"""The best labelling of a volume larger than memory, with two labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import zarr
from distributed import Client
from numpy.typing import ArrayLike
from zarr.storage import MemoryStore

from setwise._foundation._arguments import (
    FloatArray,
    as_choice,
    as_number,
    as_numbers,
    check_callback,
)
from setwise._foundation._clock import Deadline
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._threads import as_threads
from setwise.dask._executor import as_client
from setwise.dask._volumes._costs import KINDS, Costs, make_costs
from setwise.dask._volumes._label_store import LabelStore
from setwise.dask._volumes._layout import Layout
from setwise.dask._volumes._ome_zarr import OmeImage, ome_labels, opened, read_ome
from setwise.dask._volumes._sources import Source, as_source
from setwise.dask._volumes._volume_energy import Pairs, VolumeEnergy, units_for
from setwise.dask._volumes._volume_result import VolumeOptions, VolumeProgress, VolumeResult
from setwise.dask._volumes._volume_search import VolumeSearch
from setwise.dask._volumes._workers import Cluster, Threads
from setwise.fields._pixels._grid import Offset


@hints_at_names
def solve_map(
    volume: Any,
    store: Any = None,
    *,
    kind: str = "unary",
    image: Any = None,
    seeds: Any = None,
    smoothness: float = 1.0,
    spacing: ArrayLike | None = None,
    options: VolumeOptions | None = None,
    client: Client | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callable[[VolumeProgress], object] | None = None,
) -> VolumeResult:
    r"""Return the best labelling of a grid that may be larger than memory, with two labels.

    .. math:: E(x) = \sum_p u_p x_p
        + s \sum_{pq} \frac{d}{|p - q|} \exp(-\beta (I_p - I_q)^2) [x_p \ne x_q]

    with the distance :math:`|p - q|` of neighbours and the least spacing d. Blocks are cut by
    themselves, whatever lies around them, and the labels that this decides are written. Voxels
    that stay open are solved in shifted blocks, with halos, or together, so the labels are those of
    ``sw.solve_map``: of all best labellings the one with the fewest ones. A call with a store that
    has labels of the same volume and settings goes on where the last one ended.

    Parameters
    ----------
    volume : array of zarr, dask or NumPy, memory map, path, or OME-Zarr group
        One to three axes of voxels, after any of length 1. What it holds is said by ``kind``. An
        OME-Zarr group has the array of its highest resolution and its spacing.
    store : str, Path or zarr store, optional
        Where the labels are written, as an OME-Zarr group; in memory by default.
    kind : {"unary", "probabilities", "image"}
        Costs :math:`u_p` of label 1 minus those of label 0, where infinite ones forbid a label; or
        probabilities of label 1, as floats or as integers whose largest one stands for 1; or a grey
        image, whose costs come from the values under ``seeds``.
    image : as ``volume``, optional
        A grey image whose contrast lowers the weights. By default the volume if it is an image,
        otherwise the weights are constant.
    seeds : as ``volume``, optional
        Integers: 0 and 1 fix the label of a voxel, -1 marks nothing.
    smoothness : float
        s, the price of a border between the nearest neighbours without contrast.
    spacing : float or sequence of float, optional
        The distance of voxels along each axis. By default that of an OME-Zarr group, or 1.
    options : VolumeOptions, optional
        Neighbours, the decrease with the contrast, the sides of blocks, the number of sweeps.
    client : distributed.Client, optional
        A cluster. Without one, threads of this process do the work.
    n_jobs : int, optional
        The number of threads without a client; None for all cores. Each needs memory of its own.
    time_limit : float, optional
        The most seconds. Blocks that are done stay in the store.
    callback : callable, optional
        Is called with a ``VolumeProgress`` after each block; ``callback=print`` shows a line. A
        true return value ends the call.

    Returns
    -------
    VolumeResult
        The labels with their certificate, what each block decided, and what was used.

    Notes
    -----
    Costs and weights are divided by one power of two, ``unit``, and digits below are dropped: then
    blocks are cut without rounding. The numbers have 32 bits, or 64 if 32 would lose more than 1e-6
    of what there is to gain. The gap is what the dropped digits can cost, and 0 for multiples of
    the unit. ``proved`` says that the labels are the least minimiser of the energy in units.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> unary = np.random.default_rng(0).normal(size=(20, 20, 20)) - 0.2
    >>> result = sw.dask.solve_map(unary, smoothness=0.5)
    >>> result.proved, result.relative_gap < 1e-6, result.labels.shape
    (True, True, (20, 20, 20))
    """
    as_choice(kind, "kind", KINDS)
    check_callback(callback)
    deadline = Deadline.of(time_limit)
    price = as_number(smoothness, "smoothness", nonnegative=True)
    settings = VolumeOptions() if options is None else options
    if not isinstance(settings, VolumeOptions):
        raise TypeError(
            f"options must be a VolumeOptions of sw.dask or None, got {type(options).__name__}"
        )
    threads = as_threads(n_jobs)
    workers = Threads(threads) if client is None else Cluster(as_client(client))
    shared = workers.shared
    found = _as_image(volume, "volume")
    source = as_source(found.array, "volume", None, shared)
    axes = len(source.shape)
    steps, beta = settings.steps(axes), settings.contrast()
    layout = Layout(source.shape, settings.blocks(source.shape))
    sweeps = settings.most_sweeps()
    distances = _as_spacing(found.spacing if spacing is None else spacing, axes)
    contrast = source if kind == "image" else None
    if image is not None:
        if kind == "image":
            raise ValueError("image must be left out where kind is 'image': it is the volume")
        contrast = as_source(_as_image(image, "image").array, "image", source.shape, shared)
    for grey in [source] if kind == "image" else [] if contrast is None else [contrast]:
        _check_grey(grey)
    if kind == "image" and seeds is None:
        raise ValueError("seeds must be given where kind is 'image', got None")
    marks = None
    if seeds is not None:
        marks = as_source(_as_image(seeds, "seeds").array, "seeds", source.shape, shared)
        if marks.dtype.kind not in "iu":
            raise TypeError(
                "seeds must hold integers, 0, 1, and -1 where nothing is marked, got dtype "
                f"{marks.dtype}"
            )
    costs = Costs(source, kind) if kind == "image" else make_costs(source, kind)
    strengths = _strengths(price, steps, distances)
    pairs = Pairs(steps, strengths, contrast, np.nan if beta is None else beta)
    energy = VolumeEnergy(costs, pairs, marks, units_for(strengths, 32))
    labels = _opened_store(store, shared)
    labels.open(
        {
            "kind": kind,
            "shape": list(source.shape),
            "volume": [str(source.dtype), source.probe()],
            "image": None if contrast is None else [str(contrast.dtype), contrast.probe()],
            "seeds": None if marks is None else [str(marks.dtype), marks.probe()],
            "strengths": strengths.tolist(),
            "beta": beta,
            "steps": [list(step) for step in steps],
            "block": list(layout.block),
        },
        source.shape,
        layout.chunks,
        ome_labels(distances.tolist(), found.unit),
    )
    if labels.found.get("edited"):
        raise ValueError("store must have labels that were not edited, got one of result.edit()")
    search = VolumeSearch(energy, labels, layout, workers, deadline, callback, sweeps)
    return search.solve()


def _as_image(values: Any, name: str) -> OmeImage:
    """Return an array, or that of an OME-Zarr group, with its spacing."""
    values = opened(values, name)
    if isinstance(values, zarr.Group):
        return read_ome(values, name)
    return OmeImage(values, (), None)


def _as_spacing(spacing: ArrayLike, axes: int) -> FloatArray:
    given = as_numbers(np.atleast_1d(spacing), "spacing", shape=None)
    if given.size == 0:
        return np.ones(axes)
    if given.shape == (1,):
        given = np.repeat(given, axes)
    if given.shape != (axes,):
        raise ValueError(f"spacing must have {axes} entries, one per axis, got {given.size}")
    if not (np.isfinite(given).all() and (given > 0).all()):
        raise ValueError(f"spacing must be positive and finite, got {given.tolist()}")
    return given


def _check_grey(source: Source) -> None:
    if source.dtype.kind not in "fiu":
        raise TypeError(f"{source.name} must hold real numbers, got dtype {source.dtype}")


def _strengths(price: float, steps: tuple[Offset, ...], spacing: FloatArray) -> FloatArray:
    """Return the weights without contrast, one for each direction."""
    lengths = np.linalg.norm(np.array(steps) * spacing, axis=1)
    return np.asarray(price * spacing.min() / lengths)


def _opened_store(store: Any, shared: bool) -> LabelStore:
    if store is None:
        if shared:
            raise TypeError("store must be given where other processes work, got None")
        store = MemoryStore()
    return LabelStore(store)
