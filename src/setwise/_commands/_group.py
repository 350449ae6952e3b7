"""The group of all commands, and what an error looks like."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
from click.shell_completion import get_completion_class

from setwise import __version__
from setwise._commands._decide import decide
from setwise._commands._flow import flow
from setwise._commands._info import info
from setwise._commands._models import map_, marginals
from setwise._commands._output import example
from setwise._commands._pages import app, demo
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


for _command in (segment, map_, marginals, flow, decide, app, demo, info):
    setwise.add_command(_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code. What is wrong is said in one line on stderr."""
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
    except BrokenPipeError:  # of `setwise map model.uai | head`
        sys.stderr.close()
        return 1
    except ModuleNotFoundError as error:
        return _fail(f"this needs pip install 'setwise[app]': {error}", 1)
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        return _fail(str(error) or type(error).__name__, 1)


def _fail(message: str, code: int) -> int:
    click.echo("setwise: " + " ".join(message.split()), err=True)
    return code
