"""`setwise map` and `setwise marginals`: models of the UAI competitions, answers as there."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
import numpy as np

import setwise as sw
from setwise._commands._output import (
    check_stdout,
    example,
    json_option,
    print_json,
    quiet_option,
    read_bytes,
    say,
    shows_progress,
    write_text,
)

_model = click.argument("model", metavar="MODEL.uai")
_output = click.option("-o", "--output", metavar="FILE", help="Where to; stdout by default.")
_limit = click.option(
    "--time-limit", type=float, metavar="SECONDS", help="Then the best so far is the answer."
)


@click.command("map", epilog=example("setwise map grid.uai -o grid.MPE"))
@_model
@_output
@click.option("--method", default="auto", show_default=True, help="As of solve_map.")
@click.option("--tol", type=float, default=1e-9, show_default=True, help="The relative gap.")
@_limit
@json_option
@quiet_option
def map_(
    model: str,
    output: str | None,
    method: str,
    tol: float,
    time_limit: float | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """The best labelling of a model, with a bound on every other.

    MODEL.uai is a file of the UAI competitions, or - for stdin. The answer is theirs too: MPE, the
    number of variables, a label for each.
    """
    check_stdout(as_json, output)
    field = _read(model)
    best = sw.solve_map(
        field, method, tol=tol, time_limit=time_limit, verbose=shows_progress(quiet)
    )
    if as_json:
        print_json(
            {
                "labels": best.labels,
                "value": best.value,
                "bound": best.bound,
                "gap": best.gap,
                "relative_gap": best.relative_gap,
                "exact": best.exact,
                "method": best.method,
                "reason": best.reason,
                "seconds": sum(best.timings.values()),
            }
        )
    if output is not None or not as_json:
        labels = " ".join(map(str, best.labels.tolist()))
        write_text(f"MPE\n{len(best.labels)} {labels}\n", output)
    proved = "no labelling is better" if best.exact else f"none is below {best.bound:.10g}"
    say(f"energy {best.value:.10g}: {proved} ({best.method}: {best.reason})", quiet)


@click.command(epilog=example("setwise marginals grid.uai --json | jq .log_partition_upper"))
@_model
@_output
@click.option("--method", default="auto", show_default=True, help="As of marginals.")
@click.option("--tol", type=float, default=1e-3, show_default=True, help="The relative gap.")
@click.option("--temperature", type=float, default=1.0, show_default=True)
@_limit
@json_option
@quiet_option
def marginals(
    model: str,
    output: str | None,
    method: str,
    tol: float,
    temperature: float,
    time_limit: float | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Probabilities of the labels of a model, and bounds on its partition function.

    MODEL.uai is a file of the UAI competitions, or - for stdin. The answer is theirs too: MAR, the
    number of variables, and for each its number of labels and their probabilities.
    """
    check_stdout(as_json, output)
    field = _read(model)
    post = sw.marginals(
        field,
        method,
        tol=tol,
        temperature=temperature,
        time_limit=time_limit,
        verbose=shows_progress(quiet),
    )
    if as_json:
        print_json(
            {
                "probabilities": post.probabilities,
                "log_partition_upper": post.log_partition_upper,
                "log_partition_lower": post.log_partition_lower,
                "relative_gap": post.relative_gap,
                "certified": post.certified,
                "method": post.method,
                "reason": post.reason,
                "seconds": sum(post.timings.values()),
            }
        )
    if output is not None or not as_json:
        rows = (
            f"{len(row)} {' '.join(f'{p:.9g}' for p in row)}"
            for row in _of_own_labels(field, post.probabilities)
        )
        write_text(f"MAR\n{field.n_variables} {' '.join(rows)}\n", output)
    say(
        f"log Z between {post.log_partition_lower:.10g} and {post.log_partition_upper:.10g} "
        f"({post.method}: {post.reason})",
        quiet,
    )


def _of_own_labels(field: sw.fields.Field, probabilities: np.ndarray) -> list[list[float]]:
    """The probabilities of each variable, without the labels beyond those that its model has."""
    allowed = np.isfinite(field.unary)
    last = field.n_labels - np.argmax(allowed[:, ::-1], axis=1)
    return [row[:n].tolist() for row, n in zip(probabilities, last, strict=True)]


def _read(model: str) -> sw.fields.Field:
    if model != "-":
        return sw.fields.read_uai(model)
    with tempfile.TemporaryDirectory() as folder:
        data = read_bytes(model)
        packed = data[:2] == b"\x1f\x8b"
        path = Path(folder, "stdin.uai.gz" if packed else "stdin.uai")
        path.write_bytes(data)
        return sw.fields.read_uai(path)
