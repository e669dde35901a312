"""The command line: a few lines for each command; everything heavy is imported inside the commands."""

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rich_click as click

from mccfr import __version__
from mccfr.cli import (
    abstraction,
    bots,
    cluster,
    experiments,
    exploit,
    inspect,
    matches,
    play,
    review,
    runs,
    spot,
    status,
    upi,
    view,
)
from mccfr.cli.progress import HistoryCounts
from mccfr.trees.counting import counts_reported
from mccfr.user_code import UserCodeError

EXIT_FAILED, EXIT_BAD_INPUT, EXIT_STOPPED = 1, 2, 75
_MARKS = "manifest.json", "meta.json", "networks.json", "preflop"
"""What lies in runs and checkpoints, policies, networks and abstractions."""

click.rich_click.TEXT_MARKUP = "rich"
click.rich_click.COMMAND_GROUPS = {
    "mccfr": [
        {"name": "Before a run", "commands": ["init", "games", "plan"]},
        {"name": "Runs", "commands": ["solve", "spot", "upi", "resume", "status", "stop", "verify", "cluster"]},
        {
            "name": "Results",
            "commands": ["evaluate", "exploit", "export", "query", "view", "report", "compare", "tensorboard"],
        },
        {"name": "At the table", "commands": ["play", "match", "rank", "bot", "dealer", "review"]},
        {"name": "Cards", "commands": ["abstraction"]},
    ]
}


class _Commands(click.RichGroup):
    """Runs a command; prints how far a long import of a game is, and with --traceback where an error was raised."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with counts_reported(HistoryCounts()):
                return super().invoke(ctx)
        except Exception as error:
            if ctx.params["tracebacks"] and not isinstance(error, click.ClickException | click.exceptions.Exit):
                traceback.print_exception(error)
            raise


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="mccfr")
@click.option(
    "--traceback", "tracebacks", is_flag=True, help="Print Python's traceback of an error before its sentence."
)
def cli(tracebacks: bool) -> None:
    """Equilibrium strategies of huge imperfect-information games by Monte Carlo counterfactual regret minimisation.

    A run is one TOML file: the game, the solver, its limits. Examples come along and are named without a path. Try:

    \b
      mccfr solve kuhn                     compute, in runs/kuhn; Ctrl-C stops, again goes on
      mccfr evaluate runs/kuhn             exploitability of the newest checkpoint
      mccfr export runs/kuhn kuhn-policy   the average strategy as plain files
      mccfr query kuhn-policy "" --hand K  what it does with the king, first to act

    Exit status: 0 done; 2 bad input, said in one sentence; 75 stopped by a signal, resumable; 1 anything else.
    """
    del tracebacks  # `_Commands` looks at it


_ROOMS = inspect, runs, spot, status, cluster, play, exploit, matches, bots, review, view, upi, experiments, abstraction
for command in [each for room in _ROOMS for each in room.COMMANDS]:
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the program: runs a command and turns errors into one sentence and an exit status."""
    try:
        code = cli.main(args=arguments, prog_name="mccfr", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = EXIT_BAD_INPUT
    except click.ClickException as error:
        code = _explain(ValueError(_usage_mistake(error)), EXIT_BAD_INPUT)
    except click.Abort as error:  # click's word for Ctrl-C, and for input that ends where there should be more
        interrupted = isinstance(error.__context__, KeyboardInterrupt)
        code = EXIT_STOPPED if interrupted else _explain(RuntimeError("the input ended too soon"), EXIT_FAILED)
    except (ValueError, MemoryError, FileNotFoundError, FileExistsError, NotADirectoryError, BlockingIOError) as error:
        code = _explain(error, EXIT_BAD_INPUT)
    except (IsADirectoryError, PermissionError) as error:
        code = _explain(error, EXIT_FAILED if _is_inside_artefact(error) else EXIT_BAD_INPUT)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone: nothing to say to anybody
        code = EXIT_FAILED
    except (OSError, RuntimeError) as error:
        badly_named = getattr(error, "errno", None) in (errno.ENAMETOOLONG, errno.ELOOP)
        code = _explain(error, EXIT_BAD_INPUT if badly_named else getattr(error, "exit_status", EXIT_FAILED))
    sys.exit(code if isinstance(code, int) else 0)


def _is_inside_artefact(error: OSError) -> bool:
    """Whether an error is about a file inside of a run, checkpoint, policy, networks or abstraction."""
    folders = Path(error.filename or "").absolute().parents
    return any(os.path.exists(folder / name) for folder in folders for name in _MARKS)  # noqa: PTH110 - never raises


def _usage_mistake(error: click.ClickException) -> str:
    """What is wrong, and behind it where help is."""
    context, text = getattr(error, "ctx", None), error.format_message()
    if context is None:
        return text
    return f"{text}{'' if text.endswith(('.', '?', ')')) else '.'} See: {context.command_path} --help"


def _explain(error: BaseException, code: int) -> int:
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    text = " ".join(text.split())  # libraries write several lines
    if isinstance(error, UserCodeError) and error.__cause__ is not None:
        text += "; mccfr --traceback COMMAND ... prints the traceback"
    click.echo(f"mccfr: {text}", err=True)
    return code
