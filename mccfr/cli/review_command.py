"""The command that reviews hand histories: review."""

from pathlib import Path
from typing import Any

import rich_click as click

from mccfr.cli.progress_display import reporter
from mccfr.cli.shared_options import answer, code_option, json_option, path_type


@click.command()
@click.argument("hands", type=path_type, nargs=-1, required=True)
@click.option(
    "--policy", required=True, metavar="POLICY-or-RUN", help="Of whole no-limit hold'em: what is right by it."
)
@click.option(
    "--resolve",
    type=click.Choice(["turn", "river"]),
    help="Solve the rest of the hand for each decision from there on.",
)
@click.option("--boards", type=click.IntRange(4, 100_000), default=16, show_default=True, help="Drawn on a flop.")
@click.option("--workers", type=click.IntRange(1, 1024), default=1, help="Processes that share the hands.")
@click.option("--keep", type=path_type, metavar="FILE", help="Reviewed hands, one a line: after a stop it goes on.")
@click.option("--top", type=click.IntRange(0), default=20, show_default=True, help="Decisions that are told.")
@code_option
@json_option
def review(hands: tuple[Path, ...], policy: str, as_json: bool, **how: Any) -> None:
    """Tell what every decision in files of hands cost by a policy, the costliest first.

    HANDS are files, or directories of such: PHH, ACPC logs, Slumbot's JSON, PokerStars' text. Hands of more than two
    players, or of other stakes than the policy's, are told of and passed over.

    Example: mccfr review match.log --policy hunl-fine-policy --keep review.jsonl
    """
    from mccfr.matches.review.review_files import review_hands, review_text

    with reporter() as report:
        record = review_hands(hands, policy, reporter=report, **how)
    answer(record, as_json, review_text)


COMMANDS = (review,)
"""Commands that the group adds."""
