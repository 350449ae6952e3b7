"""What `import setwise` loads, asked in a fresh interpreter."""

import subprocess
import sys

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
