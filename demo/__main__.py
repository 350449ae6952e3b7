"""``python -m demo`` writes the report and prints its path."""

from __future__ import annotations

import argparse
import sys


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, write the report and print its summary."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--out", default="out", help="folder for the page and its pictures")
    parser.add_argument("--quick", action="store_true", help="a few seconds, to see that it works")
    options = parser.parse_args(arguments)
    try:
        from demo.report import write_report
    except ImportError as error:
        print(f"the demo needs pip install '.[demo]': {error}", file=sys.stderr)
        return 1
    page, summary = write_report(options.out, quick=options.quick)
    print(summary)
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
