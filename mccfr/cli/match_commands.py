"""Commands in which policies and programs play each other: match, rank."""

from pathlib import Path
from typing import Any

import rich_click as click

from mccfr.cli.progress_display import reporter
from mccfr.cli.shared_options import (
    Count,
    Duration,
    answer,
    code_option,
    hands_log_option,
    json_option,
    manner_options,
    other_manner_options,
    path_type,
)


@click.command("match")
@click.argument("names", metavar="A B ...", nargs=-1, required=True)
@click.option(
    "--hands",
    type=Count(),
    default=2_000,
    show_default=True,
    help="Number of hands; each deal is played once for each player. At least 100 deals.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the deals and draws.")
@click.option("--workers", type=click.IntRange(1, 1024), default=1, help="Number of processes.")
@click.option("--budget", type=Duration(), help="Play for this long instead of a number of hands: 90s, 3m.")
@click.option("--keep", type=path_type, help="File of finished deals; the same command continues from it.")
@hands_log_option
@code_option
@manner_options
@other_manner_options
@json_option
def match(names: tuple[str, ...], hands: int, seed: int, log: Path | None, as_json: bool, **options: Any) -> None:
    """Play A against B and print A's winnings per hand, with a 95 % interval; or one player in each seat.

    A, B ... are policies, runs or programs; at least one of them is a policy or a run. In a game of more than two
    players give one for each seat; a name may occur several times. The command then prints the winnings of each.
    Programs: always-call, always-fold, always-all-in, random, min-raise, odd-size, or your own as module:Class. "POLICY
    --resolve river" re-solves its hands during play. Each player translates the others' bets to its own tree. Every
    deal is played in every rotation of the seats. For two players three figures are printed: chips, chips with all-ins
    at their EV, and AIVAT, which has the same mean and less variance. --purify and --threshold apply to A,
    --against-purify and --against-threshold to the others.

    Example: mccfr match hunl-quick-policy always-call --hands 5000
    """
    from mccfr.evaluation.samples import Effort
    from mccfr.matches.match_series import match_text, play_match
    from mccfr.matches.players import PlayManner

    effort = Effort(options["workers"], options["budget"], options["keep"])
    if len(names) < 2:
        raise click.BadParameter("give two names or more: A B ...")
    other = PlayManner(options["against_purify"], options["against_threshold"])
    manners = [PlayManner(options["purify"], options["threshold"]), *[other] * (len(names) - 1)]
    with reporter() as report:
        record = play_match(names, hands, seed, manners=manners, effort=effort, log=log, reporter=report)
    answer(record, as_json, match_text)


@click.command("rank")
@click.argument("names", metavar="A B C ...", nargs=-1, required=True)
@click.option("--hands", type=Count(), default=2_000, show_default=True, help="Hands of each match, two for each deal.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the deals and draws.")
@click.option("--workers", type=click.IntRange(1, 1024), default=1, help="Number of processes.")
@click.option(
    "--keep", type=path_type, metavar="DIR", help="Folder of finished deals; the same command continues from it."
)
@code_option
@manner_options
@json_option
def rank(
    names: tuple[str, ...], hands: int, seed: int, workers: int, keep: Path | None, as_json: bool, **manner: Any
) -> None:
    """Play a round-robin tournament and print each player's winnings per hand, the best first.

    A B C ... are policies, runs and at most one program, as in `match`. All matches use the same deals, each in both
    seats. Figures are AIVAT estimates with 95 % intervals. With --keep an added player costs only its own matches.

    Example: mccfr rank runs/hunl-quick-policy runs/hunl-fine-policy always-call --keep ranking
    """
    from mccfr.matches.players import PlayManner
    from mccfr.matches.round_robin import play_round_robin, round_robin_text

    how = PlayManner(manner["purify"], manner["threshold"])
    with reporter() as report:
        record = play_round_robin(names, hands, seed, manner=how, workers=workers, keep=keep, reporter=report)
    answer(record, as_json, round_robin_text)
