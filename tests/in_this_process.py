"""Replaces the servers and child processes of commands by calls in this process, for `failing_reads`."""

import json
from dataclasses import replace
from http import HTTPStatus

import click
from acpc import opened
from machines import train_alone
from random_policy import policy

from mccfr.cli.progress_display import reporter
from mccfr.cluster import launch
from mccfr.config.game_tables import Menu
from mccfr.matches.review import review_files
from mccfr.view.application import Application
from storage.open_directory import OpenDirectory

REQUESTS = "/api/game", "/api/spot", "/api/play/drills", "/api/game?of=1"
"""Requests to the page of `view`."""


def install() -> None:
    """Replace the servers and child processes for the rest of this process."""
    from mccfr import view

    view.serve = _answer_once
    launch.run_to_end = _train_here
    review_files.open_player = _random_player


def _answer_once(shelf, port, *, ready):
    """Print the page's answers to the requests; the first refusal ends the command with status 1."""
    ready("")
    page = Application(shelf, port)
    for request in REQUESTS:
        path, _, query = request.partition("?")
        environ = {"REQUEST_METHOD": "GET", "REQUEST_URI": request, "PATH_INFO": path, "QUERY_STRING": query}
        status, _, body = page._respond({**environ, "HTTP_HOST": page.names[0]})
        if status != HTTPStatus.OK:
            click.echo(f"mccfr: {json.loads(body)['error']}", err=True)
            raise click.exceptions.Exit(1 if status == HTTPStatus.INTERNAL_SERVER_ERROR else 2)
        click.echo(body.decode())


def _train_here(run, start, left, arguments, machines, tell):
    """Train on machines of this process."""
    with OpenDirectory(run.directory) as held, reporter() as report:
        run = replace(run, directory=held.path)
        train_alone(run, run.build_game(), machines, report)
    return 0


def _random_player(name, **_):
    """Return a player whose policy is random and in memory."""
    return opened(policy(Menu(first=("1p",), later=("allin",), max_bets=2)), name)
