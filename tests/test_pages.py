"""The pages that scripts write say what the results and pyproject.toml say."""

import re
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
if not (ROOT / "benchmarks").exists():
    pytest.skip("the benchmarks are not part of this copy", allow_module_level=True)
sys.path.insert(0, str(ROOT))
verdicts = import_module("benchmarks.verdicts")


@pytest.mark.parametrize(
    ("note", "what", "figure", "goal", "met"),
    [
        ("a, b: 2.5 against a target of 4: NOT met", "a, b", "2.5", "4", False),
        ("a: at most 2.4 times a loop: target 3, met", "a", "at most 2.4 times a loop", "3", True),
        ("a, p = 2: 0.37 ms, goal 0.45: met", "a, p = 2", "0.37 ms", "0.45", True),
        (
            "two: 1.5 s on the clock, target 2: NOT met; see",
            "two",
            "1.5 s on the clock",
            "2",
            False,
        ),
    ],
)
def test_a_note_is_read_as_a_verdict(
    note: str, what: str, figure: str, goal: str, met: bool
) -> None:
    assert verdicts.from_notes("x", [note]) == [verdicts.Verdict("x", what, figure, goal, met)]


def test_notes_without_a_goal_are_no_verdicts() -> None:
    assert verdicts.from_notes("x", ["Processor time.", "118 of 121 goals met."]) == []


def test_a_table_is_read_as_verdicts() -> None:
    table = [["case", "setwise", "which", "share", "goal", "met"]]
    table += [["a", "1 s", "peer", "0.5", "0.6", "yes"], ["b", "2 s", "peer", "0.7", "0.6", "NO"]]
    table += [["c", "2 s", "peer", "0.7", "", ""], ["d", "3 s", "peer", "3", "4", "3 of 4"]]
    first, second, third = verdicts.from_table("x", table)
    assert first == verdicts.Verdict("x", "a, beside peer", "0.5", "0.6", True)
    assert not second.met
    assert third == verdicts.Verdict("x", "d, beside peer", "3", "4 (3 of 4)", False)


def test_the_verdicts_are_those_of_the_results() -> None:
    page = verdicts.PAGE.read_text(encoding="utf-8")
    assert verdicts.MARKED.search(page)[0].count(verdicts.section()) == 1, "run `make pages`"


def test_every_result_has_its_script_and_its_line() -> None:
    page = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
    for result in [
        *ROOT.glob("benchmarks/results/*.json"),
        *ROOT.glob("experiments/*/results/*.json"),
    ]:
        script = result.parents[1] / f"{result.stem}.py"
        assert script.exists(), f"{result} has no script"
        assert f"| `{script.relative_to(ROOT)}` |" in page, "run `make pages`"
    for picture in (ROOT / "docs" / "images").iterdir():
        row = re.search(rf"^\| `docs/images/{picture.name}` \| `(.*?)` \|", page, re.MULTILINE)
        assert row is not None, f"run `make pages`: {picture.name} is not on the page"
        assert (ROOT / row[1]).exists(), f"there is no {row[1]}"


def test_every_requirement_has_its_licence() -> None:
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for line in sum(project["optional-dependencies"].values(), project["dependencies"]):
        name = re.match(r"[\w-]+", line)[0]
        assert f"| {name} |" in page, f"run `make pages`: {name} is not on the page"
