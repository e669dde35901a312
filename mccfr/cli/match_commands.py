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
    declare_options,
    json_option,
    manner_options,
    other_manner_options,
    path_type,
)


@click.command("match")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--hands", type=Count(), default=2_000, show_default=True, help="Two for each deal; 200 at least.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of deals and draws.")
@click.option("--workers", type=click.IntRange(1, 1024), default=1, help="Processes that share the hands.")
@click.option("--budget", type=Duration(), help="As many hands as this time allows, instead of a number: 90s, 3m.")
@click.option("--keep", type=path_type, help="File for finished pairs: after a stop, the same command goes on.")
@click.option(
    "--log",
    type=path_type,
    metavar="FILE.phhs",
    help="Write the hands, no-limit hold'em only; FILE.stars.txt: PokerStars' text.",
)
@code_option
@manner_options
@other_manner_options
@declare_options
@json_option
def match(a: str, b: str, hands: int, seed: int, log: Path | None, as_json: bool, **options: Any) -> None:
    """Play A against B and tell what A wins a hand, with a 95 % interval.

    A and B are policies, runs, or programs: always-call, always-fold, always-all-in, random, min-raise, odd-size, or
    your own as module:Class; one of the two is a policy or a run. "POLICY --resolve river" solves its hands again as
    they are played. Each translates the other's bets. Every deal is played in both seats. Three figures: the chips;
    all-ins settled by their mean; and AIVAT, which takes out the luck of cards and of known strategies, and has the
    same mean. --purify and --threshold are of A.

    Example: mccfr match hunl-quick-policy always-call --hands 5000
    """
    from mccfr.evaluation.samples import Effort
    from mccfr.matches.match_series import match_text, play_match
    from mccfr.matches.players import PlayManner
    from mccfr.matches.preregistration import declare_of

    effort = Effort(options["workers"], options["budget"], options["keep"])
    manners = (
        PlayManner(options["purify"], options["threshold"]),
        PlayManner(options["against_purify"], options["against_threshold"]),
    )
    said = declare_of(options["declare"], options["expect"], seed)
    with reporter() as report:
        record = play_match((a, b), hands, seed, manners=manners, effort=effort, log=log, reporter=report, declare=said)
    answer(record, as_json, match_text)


@click.command("rank")
@click.argument("names", metavar="A B C ...", nargs=-1, required=True)
@click.option("--hands", type=Count(), default=2_000, show_default=True, help="Of each match: two for each deal.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of deals and draws.")
@click.option("--workers", type=click.IntRange(1, 1024), default=1, help="Processes that share the hands.")
@click.option("--keep", type=path_type, metavar="DIR", help="For finished pairs: after a stop, the same goes on.")
@code_option
@manner_options
@json_option
def rank(
    names: tuple[str, ...], hands: int, seed: int, workers: int, keep: Path | None, as_json: bool, **manner: Any
) -> None:
    """Play everybody against everybody, and tell what each wins a hand over all others, the best first.

    A B C ... are policies, runs, and one program at most, as `match` has them. All matches have the same deals, each in
    both seats; figures are corrected by AIVAT, with 95 % intervals. With --keep a further name costs its own matches.

    Example: mccfr rank runs/hunl-quick-policy runs/hunl-fine-policy always-call --keep ranking
    """
    from mccfr.matches.players import PlayManner
    from mccfr.matches.round_robin import play_round_robin, round_robin_text

    how = PlayManner(manner["purify"], manner["threshold"])
    with reporter() as report:
        record = play_round_robin(names, hands, seed, manner=how, workers=workers, keep=keep, reporter=report)
    answer(record, as_json, round_robin_text)


COMMANDS = (match, rank)
"""Commands that the group adds."""
