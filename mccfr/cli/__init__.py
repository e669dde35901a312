"""Entry point of the program: runs a command and turns errors and signals into an exit status.

The signal handlers are set before slow imports, so that a signal during these ends the program in the same way.
`mccfr.cli.group` has the commands.
"""

import errno
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGINT
from typing import TYPE_CHECKING

from mccfr.common import signals

if TYPE_CHECKING:
    import click

EXIT_FAILED, EXIT_BAD_INPUT = 1, 2
_MARKS = "manifest.json", "meta.json", "networks.json", "preflop", "build.lock"
"""Files that mark a directory as a run or checkpoint, a policy, networks or an abstraction."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and end with its exit status.

    arguments  words of the command line: the function then raises `SystemExit`. None: those of this process, which
               then ends here
    """
    with signals.command_line():
        try:
            code = _status_of(arguments)
            signals.settle()
        except KeyboardInterrupt as error:
            signals.settle()
            stop = error if isinstance(error, signals.SignalInterrupt) else signals.SignalInterrupt(SIGINT)
            code = _explain(stop, stop.exit_status)
        if arguments is None:
            signals.end(code)
    sys.exit(code)


def _status_of(arguments: Sequence[str] | None) -> int:
    """Run a command and return its exit status; print an expected error as one line on stderr.

    arguments  words of the command line; None: those of this process
    """
    import rich_click as click

    from mccfr.cli.group import cli

    try:
        code = cli.main(args=arguments, prog_name="mccfr", standalone_mode=False)
        signals.release()  # for options that start no command, such as --help
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = EXIT_BAD_INPUT
    except click.ClickException as error:
        code = _explain(ValueError(_usage_mistake(error)), EXIT_BAD_INPUT)
    except click.Abort as error:  # raised by click for Ctrl-C and for the end of input
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        code = _explain(RuntimeError("the input ended too soon"), EXIT_FAILED)
    except (ValueError, MemoryError, FileNotFoundError, FileExistsError, NotADirectoryError, BlockingIOError) as error:
        code = _explain(error, EXIT_BAD_INPUT)
    except (IsADirectoryError, PermissionError) as error:
        code = _explain(error, EXIT_FAILED if _is_inside_artefact(error) else EXIT_BAD_INPUT)
    except SystemExit as ended:  # click ends so where a pipe or connection is closed, with wrapped streams
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        sys.stdout, sys.stderr = (getattr(stream, "wrapped", stream) for stream in (sys.stdout, sys.stderr))
        code = 0 if signals.is_unread(sys.stdout) else _explain(ended.__context__, EXIT_FAILED)
    except (OSError, RuntimeError) as error:
        if str(error) == "can't start new thread":  # Python's text for it, as of 3.11
            error = RuntimeError(signals.no_threads_text())
        badly_named = getattr(error, "errno", None) in (errno.ENAMETOOLONG, errno.ELOOP)
        code = _explain(error, EXIT_BAD_INPUT if badly_named else getattr(error, "exit_status", EXIT_FAILED))
    return code if isinstance(code, int) else 0


def _is_inside_artefact(error: OSError) -> bool:
    """Return True if an error names a file in a run, checkpoint, policy, networks or abstraction.

    Such an error is no mistake of the user. Returns True also if the directories on the path cannot be read.
    """
    folders = Path(error.filename or "").absolute().parents
    try:
        return any((folder / name).exists() for folder in folders for name in _MARKS)
    except OSError:
        return True


def _usage_mistake(error: "click.ClickException") -> str:
    """Return the message of a usage error, followed by the command that prints help."""
    context, text = getattr(error, "ctx", None), error.format_message()
    if context is None:
        return text
    return f"{text}{'' if text.endswith(('.', '?', ')')) else '.'} See: {context.command_path} --help"


def _explain(error: BaseException, code: int) -> int:
    """Print an error as one line on stderr, and return the exit status `code`."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    text = " ".join(text.split())  # messages of libraries may have several lines
    if getattr(error, "has_traceback", False):
        text += "; mccfr --traceback COMMAND ... prints the traceback"
    if sys.stderr is not None:
        with suppress(OSError):  # its reader may have ended
            print(f"mccfr: {text}", file=sys.stderr, flush=True)
    return code
