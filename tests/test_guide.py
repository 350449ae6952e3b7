"""The code in README.md and on the pages of the site runs, and prints what is written there."""

import doctest
import re
from pathlib import Path

import pytest
from public_api import public_objects

ROOT = Path(__file__).parent.parent
GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))
COMING = sorted((ROOT / "docs" / "coming_from").glob("*.md"))
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md", *GUIDE, *COMING, *TUTORIALS]
EXPLAINED = (
    "setwise.app.",
    "setwise.conformal.",
    "setwise.dask.",
    "setwise.diversities.",
    "setwise.estimators.",
    "setwise.fields.",
    "setwise.images.",
    "setwise.functions.",
    "setwise.inference.",
    "setwise.learning.",
    "setwise.losses.",
    "setwise.plots.",
    "setwise.surrogates.",
    "setwise.torch.",
)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_code_runs(page: Path) -> None:
    # A fence right after the output would be taken for a part of it; lines keep their numbers.
    text = re.sub(r"^```.*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


def test_guide_names_everything_public() -> None:
    guide = "\n".join(page.read_text(encoding="utf-8") for page in GUIDE)
    names = {
        name.rpartition(".")[2]
        for name, value in public_objects()
        if name.startswith(EXPLAINED) or (name.count(".") == 1 and callable(value))
    }
    missing = sorted(name for name in names if not re.search(rf"[`.]{name}\b", guide))
    assert not missing, f"no page of the guide names {', '.join(missing)}"
