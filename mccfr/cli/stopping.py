"""Ends a command after a signal, with its exit status and a sentence."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn

import rich_click as click

from mccfr import signals
from mccfr.signals import EXIT_RESUMABLE, SignalInterrupt

RESUME = "mccfr resume {}"


def is_begun(directory: Path) -> bool:
    """Return whether there is a run in a directory, or runs of an experiment.

    As `mccfr.runs.directory.run.is_run`, whose imports a signal may have interrupted.
    """
    places = [directory, *directory.glob("runs/*")]
    return any((place / "manifest.json").is_file() and (place / "config.toml").is_file() for place in places)


def stoppable(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Have signals end a command with status 128 + N, from its beginning on."""
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


def goes_on(place: Callable[..., Path | None], by: str = RESUME) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Have signals end a command that trains with status 75 where there is something to go on from, else as others.

    place  gives the directory of the run by the command's parameters; None: it is not known yet
    by     what goes on with it, with the directory in place of {}
    """

    def decorate(callback: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(callback)
        def begin(**given: Any) -> Any:
            directory = place(**given)
            try:
                signals.release()
                return callback(**given)
            except SignalInterrupt as stop:
                end_resumable(stop, directory, by)

        begin.place = place  # type: ignore[attr-defined]
        return begin

    return decorate


def end_resumable(stop: SignalInterrupt, directory: Path | None, by: str = RESUME) -> NoReturn:
    """End a command that trains as `goes_on` says."""
    directory = stop.directory or directory
    if directory is not None and is_begun(directory):
        _end(EXIT_RESUMABLE, f"{stop}; continue with: {by.format(directory)}")
    _end(stop.exit_status, f"{stop} before there was a run{f' in {directory}' if directory else ''}: start it again")


def _end(status: int, sentence: str) -> NoReturn:
    click.echo(f"mccfr: {sentence}", err=True)
    raise click.exceptions.Exit(status) from None
