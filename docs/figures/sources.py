"""Write docs/figures.md: results and pictures of the repository with script, date and commit.

The commit of a result is the one that the script wrote into it, the commit of a picture the one
that added it; the date is that of the commit that added the file.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "figures.md"
HEAD = """# Where every figure comes from

Every figure of the documentation was printed by a script of the repository. A script stores its
results in the folder `results` beside it, under its own name, with the versions and the commit that
it ran with. `benchmarks/tables.py` copies tables from there into the documents, and
`benchmarks/README.md` lists all goals and whether they are met. `make bench` and `make experiments`
run the scripts, and `docs/figures/sources.py` writes this page. The word *changed* after a commit
means that the library had changed since that commit when the script ran. Pictures beside a result
are made by the same script. The pictures of the pages are listed at the end, and those of the
gallery are drawn when the site is built.
"""
PICTURES = {
    "conformal": "docs/figures/conformal.py",
    "landing": "docs/figures/landing.py",
    "page": "tests/helpers/page_screenshots.py",
    "tutorial": "docs/figures/tutorials.py",
}


def commit_of(result: Path) -> str:
    """Return the commit that a script wrote into its result."""
    content = json.loads(result.read_text(encoding="utf-8"))
    if "environment" in content:
        return str(content["environment"]["commit"]).replace("-dirty", ", changed")
    found = re.search(r"\((.*)\)", content["versions"]["setwise"])
    return found[1] if found else "unknown"


def last(path: Path, what: str) -> str:
    """Return a property of the last commit that changed the file, such as "%cs" for its date."""
    command = ["git", "-C", str(ROOT), "log", "-1", f"--format={what}", "--", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def table(results: list[Path]) -> list[str]:
    """Return one row per results file."""
    lines = ["| script | date | commit |", "|---|---|---|"]
    for result in results:
        script = (result.parents[1] / f"{result.stem}.py").relative_to(ROOT)
        lines.append(f"| `{script}` | {last(result, '%cs')} | {commit_of(result)} |")
    return lines


def pictures() -> list[str]:
    """Return one row per picture of the pages."""
    lines = ["| picture | script | date | commit |", "|---|---|---|---|"]
    for picture in sorted((ROOT / "docs" / "images").iterdir()):
        script = PICTURES[picture.stem.partition("_")[0]]
        when, commit = last(picture, "%cs %h").split()
        lines.append(f"| `{picture.relative_to(ROOT)}` | `{script}` | {when} | {commit[:7]} |")
    return lines


def page() -> str:
    """Return the whole page."""
    lines = [HEAD, "## Benchmarks", ""]
    lines += table(sorted((ROOT / "benchmarks" / "results").glob("*.json")))
    for folder in sorted((ROOT / "experiments").glob("*/results")):
        lines += ["", f"## Experiments: {folder.parent.name}", ""]
        lines += table(sorted(folder.glob("*.json")))
    lines += ["", "## Pictures of the pages", "", *pictures()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
