"""`setwise decide`: from probabilities to the set of least expected loss."""

from __future__ import annotations

import click
import numpy as np

import setwise as sw
from setwise._commands._output import (
    check_stdout,
    example,
    json_option,
    print_json,
    print_note,
    quiet_option,
    read_array,
    write_array,
    write_text,
)


@click.command(
    epilog=example("setwise decide probabilities.npy --loss jaccard --sets cells -o mask.npy")
)
@click.argument("probabilities", metavar="PROBABILITIES.npy")
@click.option(
    "--loss",
    default="dice",
    show_default=True,
    metavar="NAME",
    shell_complete=lambda *_: list(sw.losses.names()),
    help="A loss that the library knows by name, such as jaccard.",
)
@click.option(
    "--sets",
    type=click.Choice(["auto", "rows", "columns", "cells"]),
    default="auto",
    show_default=True,
    help="What of a matrix is a set; all of a picture with three axes or more is one.",
)
@click.option("-o", "--output", metavar="MASK.npy", help="Where to; as text on stdout by default.")
@json_option
@quiet_option
def decide(
    probabilities: str, loss: str, sets: str, output: str | None, as_json: bool, quiet: bool
) -> None:
    """Find the set of least expected loss, given the probability of each element to be in it.

    PROBABILITIES.npy is an array, or a text file with a table of numbers, or - for stdin.
    """
    check_stdout(as_json, output)
    given = read_array(probabilities, "probabilities")
    flat = given if given.ndim <= 2 else given.ravel()
    answer = sw.decide(flat, loss, sets=sets)
    mask = answer.mask.reshape(given.shape)
    if as_json:
        print_json(
            {
                "mask": None if output else mask.astype(np.int8),
                "size": int(mask.sum()),
                "expected": answer.expected,
                "bound": answer.bound,
                "exact": answer.exact,
                "method": answer.method,
            }
        )
    if output is not None:
        write_array(mask, output)
    elif not as_json:
        rows = np.atleast_2d(mask if mask.ndim <= 2 else mask.reshape(len(mask), -1))
        write_text("".join(" ".join(map(str, row)) + "\n" for row in rows.astype(int)), None)
    expected = float(np.mean(answer.expected))
    print_note(f"{int(mask.sum())} of {mask.size} elements, expected loss {expected:.6g}", quiet)
