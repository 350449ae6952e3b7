"""The pages whose code must run, and how it is run: `python tests/helpers/doc_pages.py`.

Only the standard library is needed, so that a fresh environment can do it.
"""

import doctest
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))
COMING = sorted((ROOT / "docs" / "coming_from").glob("*.md"))
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md", *GUIDE, *COMING, *TUTORIALS]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_page(page: Path) -> tuple[int, str]:
    """The number of examples of a page that print something else, and what was said of them."""
    # A fence right after the output would be taken for a part of it; lines keep their numbers.
    text = re.sub(r"^```.*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    runner.run(test, out=said.append)
    return runner.summarize(verbose=False).failed, "".join(said)


def main() -> None:
    failed = 0
    for page in PAGES:
        count, said = run_page(page)
        failed += count
        print(f"{page.relative_to(ROOT)}: {'all well' if not count else said}", flush=True)
    sys.exit(f"{failed} examples failed" if failed else 0)


if __name__ == "__main__":
    main()
