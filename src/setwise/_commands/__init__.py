"""The command line: one file per command, and their group."""

from setwise._commands._group import run

__all__ = ["run"]
