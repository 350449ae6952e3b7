"""The command ``setwise``, also as ``python -m setwise``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_PARTS = ("click", "rich", "PIL")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
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
