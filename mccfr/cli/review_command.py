"""The command that reviews hand histories: review."""

from pathlib import Path
from typing import Any

import rich_click as click

from mccfr.cli.progress_display import reporter
from mccfr.cli.shared_options import answer, code_option, json_option, path_type


@click.command()
@click.argument("hands", type=path_type, nargs=-1, required=True)
@click.option(
    "--policy",
    required=True,
    metavar="POLICY-or-RUN-or-FOLDER",
    help="Strategy for whole no-limit hold'em, or a folder: of those for as many players, the nearest stack judges.",
)
@click.option(
    "--resolve",
    type=click.Choice(["flop", "turn", "river"]),
    help="Solve every street again from this one on, not only where the policy lacks a bet.",
)
@click.option(
    "--boards", type=click.IntRange(4, 100_000), default=16, show_default=True, help="Boards to sample on a flop."
)
@click.option("--workers", type=click.IntRange(1, 1024), default=1, help="Number of processes.")
@click.option(
    "--keep", type=path_type, metavar="FILE", help="File of reviewed hands; the same command continues from it."
)
@click.option("--top", type=click.IntRange(0), default=20, show_default=True, help="Number of decisions to print.")
@code_option
@json_option
def review(hands: tuple[Path, ...], policy: str, as_json: bool, **how: Any) -> None:
    """Print the EV loss of every decision in hand histories, by a policy, the largest loss first.

    EVs are those of the strategy of --policy. HANDS are files or folders of files: PHH, ACPC logs, Slumbot's JSON,
    texts of poker sites. Hands may have any stacks and blinds. The command refuses hands of more than six players and
    of other games, each with the reason.

    Example: mccfr review match.log --policy hunl-fine-policy --keep review.jsonl
    """
    from mccfr.matches.review.review_files import review_hands
    from mccfr.matches.review.review_text import review_text

    with reporter() as report:
        record = review_hands(hands, policy, reporter=report, **how)
    answer(record, as_json, review_text)
