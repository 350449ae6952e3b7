"""The walks of CONTRIBUTING.md: lists of files, and how one file leads to another."""

from __future__ import annotations

import ast
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

import setwise

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "setwise"
KERNELS = ROOT / "cpp"
_COMPILED = ("setwise._core", "setwise._foundation._kernels")


@dataclass(frozen=True)
class Step:
    """A file of a walk, and the file of the walk that leads to it (None for the first)."""

    file: Path
    parent: Path | None


def walks(text: str) -> dict[str, list[Step]]:
    """The walks of the section on them, by the words in bold above each list."""
    section = text.split("## The walks\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^\*\*(.+?)\*\*.*?^```text\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    return {title: _steps(block) for title, block in blocks}


def _steps(block: str) -> list[Step]:
    steps: list[Step] = []
    above: list[tuple[int, Path]] = []  # the files that the next line may stand under
    for line in block.splitlines():
        name = line.split()[0]
        indent = len(line) - len(line.lstrip())
        file = (ROOT if name.startswith("cpp/") else PACKAGE) / name
        while above and above[-1][0] >= indent:
            above.pop()
        steps.append(Step(file, above[-1][1] if above else None))
        above.append((indent, file))
    return steps


def leads_to(one: Path, other: Path) -> bool:
    """Whether a file names another: imports it, calls a kernel of it, includes or compiles it."""
    if one.suffix != ".py":
        path = other.relative_to(KERNELS).as_posix()
        return f'#include "{path}"' in one.read_text(encoding="utf-8")
    if other.suffix == ".py":
        return other in imports(one)
    if other.suffix == ".cpp":
        binds = other.read_text(encoding="utf-8")
        return any(f'"{kernel}"' in binds for kernel in _kernels_called(one))
    return f'"{other.name}"' in one.read_text(encoding="utf-8")


def visited(call: Callable[[], object]) -> set[Path]:
    """The modules of the library whose functions a call runs, in its thread and those it starts."""
    files = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    before = sys.getprofile(), threading.getprofile()
    sys.setprofile(note)
    threading.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before[0])
        threading.setprofile(before[1])
    # A wheel's modules lie elsewhere than those that the walks name.
    installed = Path(setwise.__file__).parent
    return {
        PACKAGE / file.relative_to(installed)
        for file in map(Path, files)
        if file.is_relative_to(installed)
    }


def has_functions(file: Path) -> bool:
    """Whether a module has anything to run: one of records alone does not."""
    return any(isinstance(node, ast.FunctionDef) for node in ast.walk(_tree(file)))


@cache
def imports(file: Path) -> frozenset[Path]:
    """The files that a module imports, where a package hands on a name the file that has it."""
    found = set()
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {_home(node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {_module(alias.name) for alias in node.names}
    return frozenset(path for path in found if path is not None)


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _module(name: str) -> Path | None:
    """The file of a module or a package of the library."""
    if name.split(".")[0] != "setwise":
        return None
    path = SOURCE.joinpath(*name.split("."))
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def _home(module: str, name: str) -> Path | None:
    """The file that a name of a module comes from."""
    file = _module(f"{module}.{name}") or _module(module)
    if file is not None and file.name == "__init__.py" and file == _module(module):
        for node in ast.walk(_tree(file)):
            if not isinstance(node, ast.ImportFrom) or node.module is None:
                continue
            if name in [alias.asname or alias.name for alias in node.names]:
                return _home(node.module, name)
    return file


@cache
def _kernels_called(file: Path) -> frozenset[str]:
    """What a file takes from the compiled module."""
    found = set()
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found |= {node.attr} if node.value.id in ("_core", "_kernels") else set()
        elif isinstance(node, ast.ImportFrom) and node.module in _COMPILED:
            found |= {alias.name for alias in node.names}
    return frozenset(found)
