"""What `import setwise` loads, asked in a fresh interpreter."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("sklearn", "highspy", "daqp", "torch", "matplotlib")

PROGRAM = """
import sys
{statement}
print(*sorted({heavy}.intersection(sys.modules)))
"""


def loaded_by(statement: str) -> list[str]:
    program = PROGRAM.format(statement=statement, heavy=set(HEAVY))
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    return run.stdout.split()


@pytest.mark.parametrize(
    "statement",
    [
        "import setwise",
        "import setwise as sw; sw.functions.Modular; sw.losses.Jaccard; sw.surrogates.LovaszHinge",
    ],
    ids=["package", "functions, losses, surrogates"],
)
def test_heavy_packages_are_loaded_by_need_only(statement: str) -> None:
    assert loaded_by(statement) == []


def test_unknown_attribute_is_an_attribute_error() -> None:
    import setwise

    with pytest.raises(AttributeError, match="no_such_name"):
        setwise.no_such_name  # noqa: B018


SOURCES = Path(__file__).parents[1] / "src" / "setwise"


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(SOURCES.glob("*/*.py")) if path.parent.name != "demo"],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_no_layer_imports_the_root(path: Path) -> None:
    """The root reaches every layer, so a layer that imported it would reach those above its own.

    The compiled kernels are the exception: import-linter cannot see them, so it cannot see this.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert all(alias.name != "setwise" for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module == "setwise":
            assert [alias.name for alias in node.names] == ["_core"]
