"""Write the measured tables into README.md and docs/guide/*.md, between their markers.

    <!-- bench:batch -->
    ... replaced by the table of results/batch.json ...
    <!-- /bench -->

So no figure in a document is typed by hand. A document without markers is not changed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import RESULTS, markdown

ROOT = Path(__file__).parent.parent
MARKED = re.compile(r"(<!-- bench:(\w+) -->\n).*?(<!-- /bench -->)", re.DOTALL)


def section(name: str) -> str:
    """Return the table of one benchmark with a line on how it was measured."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        sys.exit(f"no results/{name}.json for the marker bench:{name}: run benchmarks/{name}.py")
    result = json.loads(path.read_text(encoding="utf-8"))
    where = result["environment"]
    versions = ", ".join(f"{package} {version}" for package, version in where["versions"].items())
    caption = (
        f"{result['measured']}, {where['cpu']}, Python {where['python']}, {versions}, "
        f"commit {where['commit']}; "
        f"`benchmarks/{name}.py`."
    )
    return f"{markdown(result['table'])}\n\n{caption}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="print the tables, write nothing")
    args = parser.parse_args()
    for path in sorted(RESULTS.glob("*.json")):
        print(f"{path.stem}\n{section(path.stem)}")
    if args.quick:
        return
    for path in [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]:
        if not path.exists():
            continue
        text = path.read_text(encoding="utf-8")
        filled = MARKED.sub(lambda found: found[1] + section(found[2]) + found[3], text)
        if filled != text:
            path.write_text(filled, encoding="utf-8")
            print(f"updated {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
