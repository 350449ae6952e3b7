"""What `import setwise` loads, asked in a fresh interpreter."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("sklearn", "joblib", "highspy", "torch", "matplotlib", "skimage", "PIL", "click", "rich")
HEAVY += ("dask", "distributed", "zarr")

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
        "import setwise as sw; sw.images.segment([[0, 0, 9, 9]] * 2, [[0, -1, -1, 1]] * 2).labels",
        "import setwise as sw; sw.app.serve",
    ],
    ids=["package", "functions, losses, surrogates", "images", "app"],
)
def test_heavy_packages_are_loaded_by_need_only(statement: str) -> None:
    assert loaded_by(statement) == []


def test_learning_loads_no_module_of_inference() -> None:
    program = """
import sys
import setwise.learning as learning
threads = learning.Threads(2)
threads.map(abs, [-1, 2])
threads.close()
print(*[name for name in sys.modules if name.startswith("setwise.inference")])
"""
    run = run_without(set(), program)
    assert run.stdout.split() == [], run.stderr
    assert run.returncode == 0, run.stderr


# What numpy and torch alone must do: name losses, and compute all that a device knows.
TORCH_ALONE = """
import torch
import setwise as sw

x = torch.tensor([[0.5, 2.0, 0.0], [-1.0, 0.3, 0.2]], requires_grad=True)
y = torch.tensor([[1, 1, 0], [0, 1, 255]])
for criterion in (
    sw.torch.LovaszHingeLoss("jaccard", per_image=True, ignore_index=255),
    sw.torch.LovaszHingeLoss(sw.losses.Jaccard(), buckets=8192, ignore_index=255),
    sw.torch.LovaszHingeLoss("exponential", ignore_index=255),
    sw.torch.DecomposedHingeLoss("dice", ignore_index=255),
    sw.torch.DecomposedHingeLoss("face_track_1", ignore_index=255),
    sw.torch.MarginRescalingLoss("dice", ignore_index=255),
    sw.torch.SlackRescalingLoss("jaccard", ignore_index=255),
):
    criterion(x, y).backward()
sw.torch.lovasz_softmax(x, torch.tensor([0, 2])).backward()
assert torch.isfinite(x.grad).all()
"""


def run_without(missing: set[str], program: str) -> subprocess.CompletedProcess[str]:
    text = f"import sys\nsys.modules.update(dict.fromkeys({missing}))\n{program}"
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", text], capture_output=True, text=True, check=False
    )


def test_torch_needs_numpy_and_torch_alone() -> None:
    pytest.importorskip("torch")
    others = {"scipy", "sklearn", "joblib", "threadpoolctl", "highspy", "setwise._core"}
    run = run_without(others, TORCH_ALONE)
    assert run.returncode == 0, run.stderr


def test_a_missing_torch_is_one_error_that_names_the_extra() -> None:
    program = "import setwise as sw\nassert 'torch' not in sw.__all__\nsw.torch"
    run = run_without({"torch"}, program)
    assert run.stderr.splitlines()[-1] == (
        "ImportError: setwise.torch needs PyTorch, which is not installed: "
        "pip install 'setwise[torch]'"
    )


@pytest.mark.parametrize("missing", ["dask", "distributed", "zarr"])
def test_without_dask_one_sentence_names_the_extra(missing) -> None:
    program = "import setwise as sw\nassert 'dask' not in sw.__all__\nsw.dask"
    run = run_without({missing}, program)
    assert run.stderr.splitlines()[-1] == (
        f"ImportError: setwise.dask needs {missing}, which is not installed: "
        "pip install 'setwise[dask]'"
    )


def test_a_missing_server_is_one_error_that_names_the_extra() -> None:
    for name, program in (
        ("uvicorn", "sw.app.serve(open_browser=False)"),
        ("starlette", "sw.app.serve(open_browser=False)"),
        ("anywidget", "sw.app.SegmentWidget"),
    ):
        run = run_without({name}, f"import setwise as sw\n{program}")
        assert f"needs {name}, which is not installed: pip install 'setwise[app]'" in run.stderr


def test_unknown_attribute_is_an_attribute_error() -> None:
    import setwise

    with pytest.raises(AttributeError, match="no_such_name"):
        setwise.no_such_name  # noqa: B018


# Nothing is above it, so that the root can take it nowhere that it may not go.
ON_TOP = "_commands"
SOURCES = Path(__file__).parents[1] / "src" / "setwise"


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(SOURCES.rglob("*/*.py")) if path.parent.name != ON_TOP],
    ids=lambda path: path.relative_to(SOURCES).as_posix(),
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
