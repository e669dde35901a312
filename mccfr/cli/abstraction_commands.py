"""Commands on card abstractions: build, info, bucket, strength."""

from pathlib import Path
from typing import Any

import rich_click as click

from mccfr.cli.progress_display import reporter
from mccfr.cli.shared_options import answer, file_or_example, json_option, path_type
from storage.free_space import bytes_text


@click.group()
def abstraction() -> None:
    """Build and inspect card abstractions for full hold'em; print the bucket or strength of a hand."""


@abstraction.command()
@click.argument("recipe", type=path_type)
@click.option("--out", type=path_type, help="Directory; default: the recipe's path without .toml.")
@click.option("--workers", type=click.IntRange(1, 1024), default=2, show_default=True, help="Number of threads.")
@click.option("--replace", is_flag=True, help="Replace buckets of another recipe; their runs cannot continue.")
def build(recipe: Path, out: Path | None, workers: int, replace: bool) -> None:
    """Build the abstraction that RECIPE describes; finished streets are kept.

    RECIPE is a TOML file with the number of buckets of each street and how to compute them. It may also be the name of
    an example (quick, standard, fine, large), which is copied to runs/abstractions.

    A build that was killed continues when it is started again: finished streets stay, and so does the state of a long
    clustering. The same recipe gives the same buckets for any number of workers. The build first prints the memory
    that it needs.

    Example: mccfr abstraction build runs/abstractions/quick.toml
    """
    from abstraction.build import Builder
    from abstraction.build_estimates import recipe_bytes
    from abstraction.recipe import load_recipe
    from mccfr.config.examples import RECIPES
    from mccfr.runs.directory.run_status import runs_on
    from mccfr.runs.phases import naming_stages

    with file_or_example(recipe, RECIPES) as file:
        target, loaded = out or file.with_suffix(""), load_recipe(file)
    peak = max(recipe_bytes(loaded, workers).values())
    click.echo(f"mccfr: {target}: {bytes_text(peak)} of memory at most", err=True)
    with reporter() as report, naming_stages(report) as progress:
        builder = Builder(loaded, target, workers, progress)
        if changed := builder.replaced():
            trained = ", ".join(map(str, runs_on(target))) or "no run in the folder runs"
            problem = f"{target} holds buckets of another recipe ({'; '.join(changed)}), on which {trained} was trained"
            if not replace:
                raise FileExistsError(f"{problem}: choose another directory with --out, or replace them with --replace")
            report.message(f"{problem}: replacing them")
        built = builder.build(replace=replace)
    click.echo(f"mccfr: {target}: {'built ' + ', '.join(built) if built else 'all streets were built'}", err=True)


@abstraction.command()
@click.argument("directory", metavar="DIR", type=path_type)
@json_option
def info(directory: Path, as_json: bool) -> None:
    """Print the recipe of the abstraction in DIR and measures of its buckets' quality.

    The recipe says how the buckets of each street were computed.

    Example: mccfr abstraction info runs/abstractions/quick
    """
    from abstraction.buckets import Abstraction

    facts = Abstraction(directory).info()
    answer(facts, as_json, lambda facts: "\n".join(_facts_text(*street) for street in facts.items()))


def _facts_text(street: str, facts: dict[str, Any]) -> str:
    """Return a street's number of buckets, and measures of their quality, as text.

    facts  the street's fields of `mccfr abstraction info --json`
    """
    lines = [f"{street}: {facts['buckets']:,} buckets from {facts['recipe']['features']}"]
    if "explained" in facts:
        lines.append(
            f"    {facts['explained']:.2%} of the features' variance explained; equity spread within a bucket "
            f"{facts['equity_spread']:.4f}; hands in a bucket {facts['smallest_bucket_hands']:,} to "
            f"{facts['largest_bucket_hands']:,}, median {facts['median_bucket_hands']:,.0f}; "
            f"{facts['empty_buckets']} empty"
        )
    return "\n".join(lines)


@abstraction.command()
@click.argument("directory", metavar="DIR", type=path_type)
@click.option("--hand", required=True, help="Hole cards: AsKd.")
@click.option("--board", default="", help="Board of 0, 3, 4 or 5 cards: Qs7h2d.")
@json_option
def bucket(directory: Path, hand: str, board: str, as_json: bool) -> None:
    """Print the bucket of a hand on a board."""
    from abstraction.buckets import Abstraction

    result = Abstraction(directory).bucket_of_text(hand, board)
    answer(result, as_json, "{0[street]}: bucket {0[bucket]} ({0[features]})".format)


@abstraction.command()
@click.option("--hand", required=True, help="Hole cards: AsKd.")
@click.option("--board", default="", help="Board of 0, 3, 4 or 5 cards: Qs7h2d.")
@json_option
def strength(hand: str, board: str, as_json: bool) -> None:
    """Print a hand's exact equity against a random hand: mean and mean square over all run-outs."""
    from abstraction.strength import hand_strength

    result = hand_strength(hand, board)
    text = "{0[street]}: E[HS] {0[ehs]:.6f}, E[HS²] {0[ehs2]:.6f}, {0[runouts]:,} run-outs"
    answer(result, as_json, text.format)
