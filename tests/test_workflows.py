"""What the workflows, the hooks and the documents of a contributor call is there."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
NAMING_TARGETS = [
    *WORKFLOWS,
    ROOT / ".pre-commit-config.yaml",
    ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "pyproject.toml",
    ROOT / "constraints.txt",
]


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def pinned() -> set[str]:
    return set(re.findall(r"^([\w-]+)==", read(ROOT / "constraints.txt"), flags=re.MULTILINE))


@pytest.mark.parametrize("path", NAMING_TARGETS, ids=lambda path: path.name)
def test_targets_of_make_exist(path: Path) -> None:
    declared = re.search(r"^\.PHONY:((?:.*\\\n)*.*)$", read(ROOT / "Makefile"), flags=re.MULTILINE)
    assert declared is not None
    named = re.findall(r"(?:run: |`(?:\w+=\w+ )?)make ([a-z-]+)", read(path))
    assert set(named) <= set(declared[1].replace("\\", "").split())


def test_every_python_of_the_classifiers_is_tested() -> None:
    prefix = "Programming Language :: Python :: "
    versions = [c.removeprefix(prefix) for c in PROJECT["project"]["classifiers"] if prefix in c]
    versions = [version for version in versions if "." in version]
    matrices = re.findall(r"python: \[(.*)\]", read(ROOT / ".github" / "workflows" / "tests.yml"))
    assert len(matrices) == 2, "one of Linux and macOS, one of Windows"
    for matrix in matrices:
        assert re.findall(r'"([\d.]+)"', matrix) == versions
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_may_do_little_and_name_what_exists(path: Path) -> None:
    text = read(path)
    assert re.search(r"^permissions:\n  contents: read\n\n", text, flags=re.MULTILINE)
    assert "secrets." not in text
    actions = re.findall(r"uses: (.*)", text)
    assert actions
    pinned_by_commit = r"(?:actions/[a-z-]+|pypa/gh-action-pypi-publish)@[0-9a-f]{40} # v[\d.]+"
    assert all(re.fullmatch(pinned_by_commit, action) for action in actions)
    assert set(re.findall(r"^      ([a-z-]+): write", text, flags=re.MULTILINE)) <= {
        "pages",
        "id-token",
    }
    assert text.count("persist-credentials: false") == sum("checkout" in it for it in actions)
    assert set(re.findall(r"--group (\w+)", text)) <= set(PROJECT["dependency-groups"])
    for file in re.findall(r"constraints\.txt|CMakeLists\.txt|pyproject\.toml|tests/\w+\.py", text):
        assert (ROOT / file).exists()


def test_hooks_call_the_tools_of_make() -> None:
    hooks = re.findall(r"entry: \.venv/bin/(\S+)", read(ROOT / ".pre-commit-config.yaml"))
    tools = re.findall(r"\$\(BIN\)/(\S+)", read(ROOT / "Makefile"))
    assert hooks
    assert set(hooks) <= set(tools)
    assert set(re.findall(r"repo: (\S+)", read(ROOT / ".pre-commit-config.yaml"))) == {"local"}


def test_tools_are_pinned() -> None:
    groups = PROJECT["dependency-groups"]
    tools = {*groups["lint"], *groups["test"], *groups["coverage"], "cibuildwheel", "pre-commit"}
    assert tools <= pinned()
