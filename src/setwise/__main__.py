"""``python -m setwise`` and the command ``setwise``: what the library does, from a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_PARTS = ("click", "rich", "PIL")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the answer is its exit code."""
    try:
        from setwise._commands import run
    except ModuleNotFoundError as error:
        if error.name not in _PARTS:
            raise
        sys.stderr.write(f"setwise: the command needs pip install 'setwise[app]': {error}\n")
        return 1
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
