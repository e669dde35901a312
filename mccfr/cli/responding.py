"""Options of `mccfr evaluate` for an opponent who is trained: the method trained-br."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import rich_click as click

from mccfr.cli.options import Count, path_type

RESPONDER = ("responder_abstraction", "responder_menu", "nodes", "sampler")
"""Names of the options."""


def responder_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Who the responder is, and how long he is trained."""
    for option in (
        click.option(
            "--sampler",
            metavar="NAME",
            help="trained-br: what trains it, public-chance-sampling (default) or external-sampling.",
        ),
        click.option("--nodes", type=Count(), help="trained-br: nodes to touch in training; by the game's size."),
        click.option(
            "--responder-menu",
            metavar="CONFIG",
            type=path_type,
            help="trained-br: the responder's bets, those of another configuration's [game.menu]; by default those of "
            "the policy's tree.",
        ),
        click.option(
            "--responder-abstraction",
            metavar="DIR",
            type=path_type,
            help="trained-br: the responder's card buckets, a built abstraction or the recipe beside it; by default "
            "every hand where boards are listed, else the policy's own.",
        ),
    ):
        command = option(command)
    return command


def name_responder_abstraction(target: Path, method: str, options: dict[str, Any]) -> None:
    """Of a policy, which brings its own, `--abstraction` is the responder's; changes `options` in place."""
    from mccfr.policy import is_policy

    if method == "trained-br" and options["responder_abstraction"] is None and is_policy(target):
        options["responder_abstraction"], options["abstraction"] = options["abstraction"], None
