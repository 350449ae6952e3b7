"""The group of all commands, and the form of their errors."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

import click
from click.shell_completion import get_completion_class

from setwise import __version__
from setwise._commands._app import app
from setwise._commands._decide import decide
from setwise._commands._flow import flow
from setwise._commands._info import info
from setwise._commands._models import map_, marginals
from setwise._commands._output import example, print_note
from setwise._commands._segment import segment

_EPILOG = "\n".join(
    [
        example("setwise segment cup.jpg --scribbles strokes.png -o mask.png"),
        "Exit codes: 0 done, 1 the input is not what it must be, 2 the command line is not.",
        'Completion for a shell: eval "$(setwise completion bash)"',
    ]
)


@click.group(
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
def setwise() -> None:
    """Best labellings, marginals, cuts and decisions, each with its certificate."""


@setwise.command(epilog=example('eval "$(setwise completion bash)"'))
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what a shell must run to complete commands and options."""
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(setwise, {}, "setwise", "_SETWISE_COMPLETE").source())


for _command in (segment, map_, marginals, flow, decide, app, info):
    setwise.add_command(_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. Errors are one line on stderr."""
    _open_streams()
    code = _run(arguments)
    _close_streams()
    return code


def _open_streams() -> None:
    """Reopen closed standard streams, so that no file gets their descriptors.

    Output to stderr is then lost. Writing to stdout is an error, as for a full disk.
    """
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def _close_streams() -> None:
    """Discard what could not be written, which would cause another error at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            end = os.open(os.devnull, os.O_WRONLY)
            os.dup2(end, stream.fileno())
            os.close(end)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        given = None if arguments is None else list(arguments)
        answer = setwise.main(given, prog_name="setwise", standalone_mode=False)
        return answer if isinstance(answer, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.UsageError as error:
        return _fail(error.format_message(), 2)
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", 130)
    except click.ClickException as error:
        return _fail(error.format_message(), 1)
    except BrokenPipeError:  # as in `setwise map model.uai | head`
        return 1
    except ModuleNotFoundError as error:
        return _fail(f"this needs pip install 'setwise[app]': {error}", 1)
    except OSError as error:
        if error.errno == errno.EBADF:
            return _fail("stdout must be open to be written, got none", 1)
        return _fail(str(error), 1)
    except (ValueError, TypeError, ImportError, MemoryError) as error:
        return _fail(str(error) or type(error).__name__, 1)


def _fail(message: str, code: int) -> int:
    print_note("setwise: " + " ".join(message.split()), quiet=False)
    return code
