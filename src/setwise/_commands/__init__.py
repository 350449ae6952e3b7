"""The command line: one file a command, and the group that they are in."""

from setwise._commands._group import run

__all__ = ["run"]
