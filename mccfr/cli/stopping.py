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
    """Return whether a directory holds a run, or the runs of an experiment.

    It repeats `mccfr.runs.directory.run.is_run`, because a signal may have interrupted that module's import.
    Raises `UnreadableError` if the system cannot tell.
    """
    places = [directory, *directory.glob("runs/*")]
    return any((place / "manifest.json").is_file() and (place / "config.toml").is_file() for place in places)


def stoppable(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command's callback that ends with status 128 + N at signal N; one that trains is unchanged."""
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
    """Return a decorator for commands that train, which a signal ends with status 75 if a run exists.

    Without a run the status is 128 + N.

    directory_of  returns the run's directory from the command's parameters; None: not known yet
    by            command that continues, with {} for the directory
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
    """End a command that trains, with the status and message that `resumable_command` describes."""
    directory = stop.directory or directory
    if directory is not None and holds_runs(directory):
        _end(EXIT_RESUMABLE, f"{stop}; continue with: {by.format(directory)}")
    _end(stop.exit_status, f"{stop} before there was a run{f' in {directory}' if directory else ''}: start it again")


def _end(status: int, sentence: str) -> NoReturn:
    signals.silence()
    click.echo(f"mccfr: {sentence}", err=True)
    raise click.exceptions.Exit(status) from None
