"""Ends commands after a signal, with an exit status and a message."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn

import rich_click as click

from mccfr.common import signals
from mccfr.common.signals import EXIT_RESUMABLE, SignalInterrupt
from storage.damage import reading

RESUME = "mccfr resume {}"


@reading()
def holds_runs(directory: Path) -> bool:
    """Return True if a directory is a run, or an experiment that has runs in its folder runs/.

    It repeats `mccfr.runs.directory.run.is_run`, because a signal may have interrupted that module's import.
    Raises `UnreadableError` if the system cannot read the directory.
    """
    places = [directory, *directory.glob("runs/*")]
    return any((place / "manifest.json").is_file() and (place / "config.toml").is_file() for place in places)


def stoppable(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a command's function so that signal N ends it with status 128 + N.

    A function that `resumable_command` has decorated is returned unchanged.
    """
    if hasattr(callback, "place"):
        return callback

    @wraps(callback)
    def begin(**given: Any) -> Any:
        try:
            signals.release()
            return callback(**given)
        except SignalInterrupt as stop:
            _end(stop.exit_status, f"{stop}")

    return begin


def resumable_command(
    directory_of: Callable[..., Path | None], by: str = RESUME
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for commands that train: a signal ends them with status 75 if a run exists.

    If there is no run yet, signal N ends them with status 128 + N.

    directory_of  function that returns the run's directory from the command's parameters; None: not known yet
    by            command that continues the run, for the message; {} stands for the directory
    """

    def decorate(callback: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(callback)
        def begin(**given: Any) -> Any:
            directory = directory_of(**given)
            try:
                signals.release()
                return callback(**given)
            except SignalInterrupt as stop:
                end_resumable(stop, directory, by)

        begin.place = directory_of  # type: ignore[attr-defined]
        return begin

    return decorate


def end_resumable(stop: SignalInterrupt, directory: Path | None, by: str = RESUME) -> NoReturn:
    """End a training command after a signal, with status 75 if a run exists, else 128 + N.

    directory  the run's directory; None: not known
    by         command that continues the run, for the message; {} stands for the directory
    """
    directory = stop.directory or directory
    if directory is not None and holds_runs(directory):
        _end(EXIT_RESUMABLE, f"{stop}; continue with: {by.format(directory)}")
    _end(stop.exit_status, f"{stop} before there was a run{f' in {directory}' if directory else ''}: start it again")


def _end(status: int, sentence: str) -> NoReturn:
    """Print a sentence on stderr and end the command with an exit status."""
    signals.silence()
    click.echo(f"mccfr: {sentence}", err=True)
    raise click.exceptions.Exit(status) from None
