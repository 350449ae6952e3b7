"""What two builds are compared on: every public callable, and every bit."""

from __future__ import annotations

import dataclasses
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
if not FOLDER.exists():
    pytest.skip("the benchmarks are not part of this copy", allow_module_level=True)


# In a process of its own, because the benchmarks hold BLAS to one thread.
SPOILT = """
import numpy as np
from benchmarks.same_answers import compare, run

kept = run(["potentials"], False)
assert compare(kept, dict(kept), 9)
changed = dict(kept)
name, missing = [name for name, array in kept.items() if array.dtype == np.float64][:2]
changed[name] = np.nextafter(kept[name], np.inf)
changed["new"] = changed.pop(missing)
print("spoilt")
assert not compare(kept, changed, 9)
print(name, missing, sep="|")
"""


def test_one_bit_is_a_difference() -> None:
    command = [sys.executable, "-c", SPOILT]
    run = subprocess.run(command, cwd=FOLDER.parent, capture_output=True, text=True, check=True)
    nothing, *told, no_failure, names = run.stdout.split("spoilt\n")[1].splitlines()
    name, missing = names.split("|")
    assert (nothing, no_failure) == ("0 differ", "0 fail in both builds")
    assert told[0::2] == ["1 differ in the last digits", "1 are missing", "1 are new"]
    assert told[1].strip().startswith(f"{name} ")
    assert [line.strip() for line in told[3::2]] == [missing, "new"]


@pytest.mark.parametrize(
    "layer",
    [
        *("functions", "losses", "surrogates", "fields", "diversities", "inference", "learning"),
        *("estimators", "images", "conformal", "torch", ""),  # the last one is the root
    ],
)
def test_every_public_callable_has_a_problem(layer: str) -> None:
    if layer == "torch":
        pytest.importorskip("torch")
    module = import_module(f"setwise.{layer}".rstrip("."))
    text = "\n".join(path.read_text() for path in (FOLDER / "problems").glob("*.py"))
    told = [name for name in module.__all__ if not re.search(rf"\b{name}\b", text)]
    for name in told:  # records come out of calls, protocols are the caller's to fill
        value = getattr(module, name)
        if inspect.ismodule(value):
            continue
        assert dataclasses.is_dataclass(value) or inspect.isabstract(value) or is_protocol(value), (
            f"{layer}.{name} has no problem in benchmarks/problems"
        )


def is_protocol(value: object) -> bool:
    return getattr(value, "_is_protocol", False)
