"""The code in README.md and on the pages of the site runs, and prints what is written there."""

import re
from pathlib import Path

import pytest
from doc_pages import GUIDE, PAGES, run_page
from public_api import public_objects

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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_code_runs(page: Path) -> None:
    failed, said = run_page(page)
    assert failed == 0, said


def test_guide_names_everything_public() -> None:
    guide = "\n".join(page.read_text(encoding="utf-8") for page in GUIDE)
    names = {
        name.rpartition(".")[2]
        for name, value in public_objects()
        if name.startswith(EXPLAINED) or (name.count(".") == 1 and callable(value))
    }
    missing = sorted(name for name in names if not re.search(rf"[`.]{name}\b", guide))
    assert not missing, f"no page of the guide names {', '.join(missing)}"
