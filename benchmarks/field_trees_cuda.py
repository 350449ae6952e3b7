"""Trees and layers of regions on a GPU: upper bounds of fields with their certificate.

The script prints the milliseconds of a layer's call to a relative gap of 1e-3, and of its solver
alone. Logits are smooth fields plus noise. All pairs have one weight, and so have all regions:
three layers of 16, 48 and 190 cells, which are the Voronoi cells of scattered points. On a small
grid both bounds are compared with those of the compiled solver.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from scipy.spatial import cKDTree

import setwise as sw
from setwise.torch._cuda._fields._regions import region_bound
from setwise.torch._cuda._fields._trees import tree_bound

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.decide_cuda import milliseconds
from benchmarks.field_layers_cuda import STEPS, TOL, batches, logits_of
from benchmarks.shared.measure import arguments, nothing_to_measure, report

CELLS, ALPHA = (16, 48, 190), 0.8
# height, width, labels, weight of pairs, of regions, images, goal in ms
CASES = (
    (512, 512, 21, 1.0, None, 1, 20.0),
    (512, 512, 21, 2.0, None, 1, 20.0),
    (213, 320, 21, 1.0, None, 1, None),
    (213, 320, 21, 1.0, None, 8, None),
    (213, 320, 21, 1.0, 0.3, 1, 40.0),
    (213, 320, 21, 1.0, 1.0, 1, 40.0),
    (213, 320, 21, 2.0, 1.0, 1, 40.0),
    (213, 320, 21, 1.0, 1.0, 8, None),
    (64, 64, 5, 1.0, None, 1, None),
    (64, 64, 5, 1.0, 1.0, 1, None),
)


def cells(height: int, width: int) -> np.ndarray:
    """Return three maps of cells, (K, N)."""
    places = np.stack(np.mgrid[:height, :width].reshape(2, -1), axis=1)
    maps = []
    for number in CELLS:
        points = np.random.default_rng((5, number)).uniform(size=(number, 2)) * [height, width]
        maps.append(cKDTree(points).query(places)[1])
    return np.array(maps)


def solver(x: torch.Tensor, sides: tuple[int, int], weight: float, of_regions: float | None):
    """Return a function from a tolerance to the bound of logits (B, L, N)."""
    pairs = torch.full((len(x), 2, x.shape[2]), weight, device="cuda")
    if of_regions is None:
        return lambda tol: tree_bound(x, pairs[:, 0], pairs[:, 1], sides, tol)
    maps = torch.from_numpy(cells(*sides)).cuda().expand(len(x), -1, -1)
    strengths = torch.full((len(x), len(CELLS), max(CELLS)), of_regions, device="cuda")
    powers = (ALPHA,) * len(CELLS)
    return lambda tol: region_bound(x, pairs, sides, STEPS, maps, strengths, powers, tol)


def layer_of(weight: float, of_regions: float | None, **options) -> sw.torch.FieldMarginals:
    """Return the public layer for the same field."""
    method = "trees" if of_regions is None else "projection"
    return sw.torch.FieldMarginals(
        weight, region_weight=of_regions, alpha=ALPHA, method=method, **options
    )


def check() -> None:
    """Check that the bounds of device and host agree within their gaps."""
    sides, x = (32, 32), logits_of(1, 5, 32, 32)
    maps = [torch.from_numpy(m).view(1, *sides) for m in cells(*sides)]
    for of_regions in (None, 1.0):
        found = solver(x, sides, 1.0, of_regions)(TOL)
        assert found is not None, "no kernel runs here"
        layer = layer_of(1.0, of_regions, tol=1e-6, bounds=True)
        given = None if of_regions is None else maps
        post = layer(x.double().cpu().view(1, 5, *sides), regions=given)
        upper, gap = found.upper.item(), found.gap.item()
        assert upper >= (post.log_partition_upper - post.gap).item() - 1e-9
        assert upper - gap <= post.log_partition_upper.item() + 1e-9


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    if not torch.cuda.is_available():
        nothing_to_measure("no CUDA device: nothing to measure")
    check()
    head = ["method", "images", "labels", "weight", "of regions", "ms", "goal", "met", "solver"]
    table, data = [[*head, "passes", "relative gap"]], []
    for height, width, labels, weight, of_regions, batch, goal in (
        CASES[-2:] if args.quick else CASES[:-2]
    ):
        x = logits_of(batch, labels, height, width)
        solve = solver(x, (height, width), weight, of_regions)
        found = solve(TOL)
        assert found is not None
        size = (found.upper - x.double().amax(1).sum(1)).abs().clamp(min=1.0)
        relative = (found.gap / size).max().item()
        trees, layer = of_regions is None, layer_of(weight, of_regions, tol=TOL)
        image, maps = x.unflatten(2, (height, width)), None
        if not trees:
            flat = torch.from_numpy(cells(height, width)).cuda().expand(batch, -1, -1)
            maps = list(flat.unflatten(2, (height, width)).unbind(1))
        ms = milliseconds(lambda x=image, layer=layer, maps=maps: layer(x, regions=maps), 9)
        alone = milliseconds(lambda solve=solve: solve(TOL), 9)
        passes = f"{found.passes}" if trees else f"{found.rounds} ({found.sweeps} sweeps)"
        method, name = "trees" if trees else "projection", f"{batch} of {height} x {width}"
        met = "" if goal is None else "yes" if ms <= goal else "NO"
        shown = [f"{weight:g}", "" if trees else f"{of_regions:g}", f"{ms:.2f}"]
        goals = ["" if goal is None else f"{goal:g}", met, f"{alone:.2f}", passes]
        table.append([method, name, str(labels), *shown, *goals, f"{relative:.1e}"])
        same = {"method": method, "labels": labels, "weight": weight, "of regions": of_regions}
        data.append({**same, "images": name, "ms": ms, "solver": alone})
    device = torch.cuda.get_device_name()
    largest = [int(np.bincount(m).max()) for m in cells(213, 320)]
    report(
        "field_trees_cuda",
        table,
        data,
        notes=[f"{device}; relative gap {TOL:g}; largest regions {largest}.", *batches(data)],
        measured=f"Medians of nine calls, {device}",
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
