"""`setwise map` and `setwise marginals`: models and answers in the UAI formats."""

from __future__ import annotations

import tempfile
from pathlib import Path
from shutil import rmtree

import click

import setwise as sw
from setwise._commands._output import (
    check_stdout,
    example,
    json_option,
    print_json,
    print_note,
    quiet_option,
    read_bytes,
    shows_progress,
    write_text,
)
from setwise._foundation._arguments import IntArray
from setwise._foundation._files import removed_by_signals
from setwise.fields._uai._read import read_with_cards

_model = click.argument("model", metavar="MODEL.uai")
_evidence = click.option(
    "--evidence", metavar="FILE", help="Observed variables, in the UAI format for evidence."
)
_output = click.option("-o", "--output", metavar="FILE", help="Where to; stdout by default.")
_limit = click.option(
    "--time-limit", type=float, metavar="SECONDS", help="Then the best so far is the answer."
)


@click.command("map", epilog=example("setwise map grid.uai -o grid.MPE"))
@_model
@_evidence
@_output
@click.option("--method", default="auto", show_default=True, help="As of solve_map.")
@click.option("--tol", type=float, default=1e-9, show_default=True, help="The relative gap.")
@_limit
@json_option
@quiet_option
def map_(
    model: str,
    evidence: str | None,
    output: str | None,
    method: str,
    tol: float,
    time_limit: float | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find the best labelling of a model, with a bound on the energy of every labelling.

    MODEL.uai is a file in the UAI format, or - for stdin. The answer is in the UAI format too: MPE,
    the number of variables, and a label for each.
    """
    check_stdout(as_json, output)
    field, _ = _read(model, evidence)
    best = sw.solve_map(
        field,
        method,
        tol=tol,
        time_limit=time_limit,
        verbose=shows_progress(quiet),
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
    print_note(f"energy {best.value:.10g}: {proved} ({best.method}: {best.reason})", quiet)


@click.command(epilog=example("setwise marginals grid.uai --json | jq .log_partition_upper"))
@_model
@_evidence
@_output
@click.option("--method", default="auto", show_default=True, help="As of marginals.")
@click.option("--tol", type=float, default=1e-3, show_default=True, help="The relative gap.")
@click.option("--temperature", type=float, default=1.0, show_default=True)
@_limit
@json_option
@quiet_option
def marginals(
    model: str,
    evidence: str | None,
    output: str | None,
    method: str,
    tol: float,
    temperature: float,
    time_limit: float | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compute the probabilities of a model's labels, and bounds on its partition function.

    MODEL.uai is a file in the UAI format, or - for stdin. The answer is in the UAI format too: MAR,
    the number of variables, and for each variable its number of labels and their probabilities.
    """
    check_stdout(as_json, output)
    field, cards = _read(model, evidence)
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
            f"{card} {' '.join(f'{p:.9g}' for p in row[:card].tolist())}"
            for row, card in zip(post.probabilities, cards.tolist(), strict=True)
        )
        write_text(f"MAR\n{field.n_variables} {' '.join(rows)}\n", output)
    print_note(
        f"log Z between {post.log_partition_lower:.10g} and {post.log_partition_upper:.10g} "
        f"({post.method}: {post.reason})",
        quiet,
    )


def _read(model: str, evidence: str | None) -> tuple[sw.fields.Field, IntArray]:
    """Return the field of a model, and the number of labels of each variable in the file."""
    if model == evidence == "-":
        raise click.UsageError("stdin can be the model or the evidence, got - for both")
    with tempfile.TemporaryDirectory() as folder, removed_by_signals(lambda: rmtree(folder)):
        seen = None if evidence is None else _as_file(evidence, folder)
        return read_with_cards(_as_file(model, folder), seen)


def _as_file(name: str, folder: str) -> str | Path:
    """Return the name of a file; "-" (stdin) is first copied to a file in the folder."""
    if name != "-":
        return name
    data = read_bytes(name)
    path = Path(folder, "stdin.uai.gz" if data[:2] == b"\x1f\x8b" else "stdin.uai")
    path.write_bytes(data)
    return path
