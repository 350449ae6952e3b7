"""Fields of two labels and pairs of any sign: the number of proved answers, and their time.

The models of the UAI competition of 2014 that no cut solves are read from $SETWISE_DATA. Random
tori have couplings of several strengths; their seeds differ from those that the methods were
developed on. All times are processor times of one thread, in one process. toulbar2, a branch and
bound for weighted constraint networks, gets the same tables and a limit on its time.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import arguments, nothing_to_measure, report

HEAD = ["instance", "variables", "labels", "method", "setwise", "proved", "toulbar2", "proved "]
HEAD += ["log Z exact", "seconds"]
LIMIT = 5.0  # seconds for toulbar2
STRENGTHS = {
    "0.5": 0.5,
    "1": 1.0,
    "2": 2.0,
    "4": 4.0,
    "±1, unaries 0.1": 0.1,
    "±1, no unaries": 0.0,
}


def torus(side: int, strength: str, seed: int) -> sw.fields.Field:
    """Return a grid that is closed at its ends, with weights of edges of both signs."""
    rng = np.random.default_rng(seed)
    at = np.arange(side * side).reshape(side, side)
    ends = [np.stack([at, np.roll(at, -1, axis)], axis=-1).reshape(-1, 2) for axis in (0, 1)]
    edges, size = np.concatenate(ends), STRENGTHS[strength]
    if "±" in strength:
        weights, unary = rng.choice([-1.0, 1.0], len(edges)), size * rng.normal(size=(side**2, 2))
    else:
        weights, unary = size * rng.normal(size=len(edges)), rng.normal(size=(side**2, 2))
    tables = weights[:, None, None] * (1.0 - np.eye(2))
    return sw.fields.Field(unary) + sw.fields.Pairwise(edges, tables)


def by_toulbar2(field: sw.fields.Field) -> tuple[float, float | None]:
    """Return the seconds of a branch and bound, and the least energy if it was proved."""
    try:
        import pytoulbar2
    except ImportError:
        return float("nan"), None
    rows = [[str(a) for a in range(field.n_labels)]] * field.n_variables
    began = time.process_time()
    constant, unary, terms = field._folded()
    model = pytoulbar2.CFN(1e9, resolution=6)
    for i, row in enumerate(rows):
        model.AddVariable(f"x{i}", row)
        model.AddFunction([f"x{i}"], np.minimum(unary[i], 1e6).tolist())
    for _, term in terms:
        for scope, energies in tables_of(term, field):
            model.AddFunction([f"x{i}" for i in scope], energies)
    found = model.Solve(timeLimit=int(LIMIT))
    seconds = time.process_time() - began
    bound = model.GetDDualBound()
    proved = bool(found) and found[1] - bound <= 1e-4 and seconds < LIMIT
    return seconds, float(found[1]) + constant if proved else None


def tables_of(term: object, field: sw.fields.Field):
    """Yield the variables and the energies of the tables of a term of pairs."""
    if isinstance(term, sw.fields.PottsTerm):
        unequal = 1.0 - np.eye(field.n_labels)
        for edge, weight in zip(term.edges.tolist(), term.weights, strict=True):
            yield edge, (weight * unequal).ravel().tolist()
    elif isinstance(term, sw.fields.TableTerm):
        for edge, table, weight in zip(term.edges.tolist(), term.tables, term.weights, strict=True):
            yield edge, (weight * table).ravel().tolist()


def seconds_of(call) -> tuple[float, object]:
    """Return the processor time of a call, and its result."""
    began = time.process_time()
    result = call()
    return time.process_time() - began, result


def measured(name: str, field: sw.fields.Field, *, log_z: bool, peer: bool) -> dict[str, object]:
    """Measure one instance."""
    print(name, file=sys.stderr)
    seconds, best = seconds_of(lambda: sw.solve_map(field, n_jobs=1))
    row = {
        "instance": name,
        "variables": field.n_variables,
        "labels": field.n_labels,
        "method": best.method,
        "seconds": seconds,
        "value": best.value,
        "gap": best.gap,
        "exact": best.exact,
    }
    if peer:
        row["peer_seconds"], row["peer_value"] = by_toulbar2(field)
        if row["peer_value"] is not None and best.exact:
            # its costs have six decimals
            assert abs(row["peer_value"] - best.value) <= 1e-5 * max(1.0, field.n_variables), name
    if log_z:
        row["log_z_seconds"], post = seconds_of(lambda: sw.marginals(field, n_jobs=1))
        row["log_z_exact"], row["log_z"] = post.exact, post.log_partition_upper
    return row


def shown(row: dict[str, object]) -> list[str]:
    """Return the cells of an instance."""
    cells = [row["instance"], str(row["variables"]), str(row["labels"]), row["method"]]
    cells += [f"{row['seconds']:.2f} s", "yes" if row["exact"] else f"gap {row['gap']:.2g}"]
    if "peer_seconds" in row and np.isfinite(row["peer_seconds"]):
        cells += [f"{row['peer_seconds']:.2f} s", "no" if row["peer_value"] is None else "yes"]
    else:
        cells += ["", ""]
    if "log_z" in row:
        cells += ["yes" if row["log_z_exact"] else "no", f"{row['log_z_seconds']:.2f} s"]
    else:
        cells += ["", ""]
    return cells


def goal(what: str, figure: float, limit: float, unit: str) -> str:
    """Return a sentence with the largest figure, its goal, and whether the goal is met."""
    met = "met" if figure <= limit else "NOT met"
    return f"{what}: {figure:.2g} {unit}, goal of {limit:g} {unit}: {met}"


def models(quick: bool) -> list[dict[str, object]]:
    """Measure the models of the competition that no cut solves."""
    folder = os.environ.get("SETWISE_DATA")
    listed = Path(folder or "", "uai2014", "exact_values.json")
    if not folder or not listed.exists():
        nothing_to_measure("SETWISE_DATA has no uai2014/exact_values.json")
    rows = []
    for name, known in json.loads(listed.read_text()).items():
        if name.startswith("Segmentation") or (quick and known["n_vars"] != 100):
            continue
        packed = listed.parent / (known["file"] + ".gz")
        with tempfile.NamedTemporaryFile(suffix=".uai") as file:
            Path(file.name).write_bytes(gzip.decompress(packed.read_bytes()))
            field = sw.fields.read_uai(file.name)
        if sw.solve_map(field, tol=np.inf).method == "cut":
            continue
        plain = name.startswith("Grids")
        row = measured(name, field, log_z=plain, peer=not quick)
        if known["exact_ln_max"] is not None:
            assert abs(-row["value"] - known["exact_ln_max"]) <= 2e-6, name
        if plain and known["exact_lnZ"] is not None:
            assert abs(row["log_z"] - known["exact_lnZ"]) <= 2e-6, name
        rows.append(row)
    return rows


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    rows = models(args.quick)
    small = [row for row in rows if row["variables"] == 100]
    large = [row for row in rows if row["instance"].startswith("Grids") and row not in small]
    tori = []
    for side in (10,) if args.quick else (10, 20, 30):
        for strength in STRENGTHS:
            for seed in (100,) if args.quick else (100, 101, 102):
                name = f"torus {side} x {side}, {strength}, seed {seed}"
                peer = seed == 100 and not args.quick
                row = measured(name, torus(side, strength, seed), log_z=False, peer=peer)
                tori.append(row)
    in_time = [row for row in tori if row["exact"] and row["seconds"] <= 30.0]
    notes = [
        goal("UAI 2014, 10 x 10: the slowest best labelling", _slowest(small), 0.5, "s"),
        goal("UAI 2014, 10 x 10: the slowest log Z", _slowest(small, "log_z_seconds"), 1.0, "s"),
        goal("UAI 2014: models without a proof", _open(rows), 0, f"of {len(rows)}"),
        goal("UAI 2014: the slowest best labelling", _slowest(rows), 10.0, "s"),
        goal(
            "log Z that is not exact", sum(not r["log_z_exact"] for r in small + large), 0, "models"
        ),
    ]
    if large:
        notes += [
            goal("UAI 2014, plain 20 x 20: the slowest best labelling", _slowest(large), 2.0, "s"),
            goal(
                "UAI 2014, plain 20 x 20: the slowest log Z",
                _slowest(large, "log_z_seconds"),
                6,
                "s",
            ),
        ]
    share = 100.0 * (1.0 - len(in_time) / len(tori))
    notes.append(goal("random tori without a proof within 30 s", share, 10.0, "%"))
    report(
        "exact",
        [HEAD, *(shown(row) for row in rows + tori)],
        rows + tori,
        notes=notes,
        measured=f"Processor time, one thread; toulbar2 with a limit of {LIMIT:g} s",
        quick=args.quick,
    )


def _slowest(rows: list[dict[str, object]], what: str = "seconds") -> float:
    """Return the largest time of instances, infinity if one of them is not exact."""
    exact = "exact" if what == "seconds" else "log_z_exact"
    return max(row[what] if row[exact] else float("inf") for row in rows)


def _open(rows: list[dict[str, object]]) -> int:
    return sum(not row["exact"] for row in rows)


if __name__ == "__main__":
    main()
