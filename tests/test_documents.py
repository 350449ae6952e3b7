"""What the documents repeat is what the code says."""

import re
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_contributing_shows_the_example_that_runs() -> None:
    example = (ROOT / "examples" / "plot_own_loss.py").read_text(encoding="utf-8")
    region = example.split("# [own-loss]\n")[1].split("# [own-loss-end]")[0].strip()
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = contributing.split("## Add your own loss")[1].split("\n## ")[0]
    shown = re.search(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert shown is not None, "CONTRIBUTING.md has no Python block under 'Add your own loss'"
    assert shown[1].strip() == region


def test_version_is_the_same_everywhere() -> None:
    import setwise

    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    stated = re.search(r'^version: "?([^"\n]+)"?$', citation, flags=re.MULTILINE)
    assert stated is not None
    assert setwise.__version__ == version("setwise") == stated[1]
    assert f"## [{stated[1]}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
