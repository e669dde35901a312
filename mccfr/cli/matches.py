"""The command that has policies and programs play each other."""

from pathlib import Path
from typing import Any

import rich_click as click

from mccfr.cli.options import Count, Duration, json_option, path_type, print_json
from mccfr.cli.progress import reporter


@click.command("match")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--hands", type=Count(), default=2_000, show_default=True, help="Two for each deal; 200 at least.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of deals and draws.")
@click.option("--workers", type=click.IntRange(1, 1024), default=1, help="Processes that share the hands.")
@click.option("--budget", type=Duration(), help="As many hands as this time allows, instead of a number: 90s, 3m.")
@click.option("--keep", type=path_type, help="File for finished pairs: after a stop, the same command goes on.")
@click.option("--log", type=path_type, metavar="FILE.phhs", help="Write the hands, no-limit hold'em only.")
@json_option
def match(
    a: str,
    b: str,
    hands: int,
    seed: int,
    workers: int,
    budget: float | None,
    keep: Path | None,
    log: Path | None,
    as_json: bool,
) -> None:
    """Play A against B and tell what A wins a hand, with a 95 % interval.

    A and B are policies, runs, or programs: always-call, always-fold, always-all-in, random, min-raise, odd-size, or
    your own as module:Class; one of the two is a policy or a run. "POLICY --resolve river" solves its hands again as
    they are played. Each translates the other's bets. Every deal is
    played in both seats. Three figures: the chips; all-ins settled by their mean; and AIVAT, which takes out the luck
    of cards and of known strategies, and has the same mean.

    Example: mccfr match hunl-quick-policy always-call --hands 5000
    """
    from mccfr.evaluation.units import Effort
    from mccfr.runs.matches import play_match

    effort = Effort(workers, budget, keep)
    with reporter() as report:
        record = play_match((a, b), hands, seed, effort=effort, log=log, reporter=report)
    if as_json:
        print_json(record)
        return
    click.echo(f"{record['a']} against {record['b']}, {record['hands']:,} hands, {record['seconds']:.3g} s")
    for title, key in (("chips", ""), ("all-ins by their mean", "allin_"), ("AIVAT", "aivat_")):
        click.echo(f"{title:22} {_figure(record, key)}")


def _figure(record: dict[str, Any], key: str) -> str:
    """A figure for people: in thousandths of a big blind where there is one."""
    unit, name = ("chips", "chips") if record[f"{key}mean_mbb"] is None else ("mbb", "mbb/g")
    low, high = record[f"{key}ci95_{unit}"]
    return f"{record[f'{key}mean_{unit}']:+.5g} {name} (95 %: {low:+.5g} to {high:+.5g})"


COMMANDS = (match,)
"""What the program offers from here."""
