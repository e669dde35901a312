"""Measures exploitability by number of buckets and length of training: `quality.py OUT`.

The rows are for the table of `mccfr plan`.  It trains the recipes `hunl-quick` (external sampling) and `hunl-safe`
(CFR-BR), on three numbers of buckets and to three lengths.  Each strategy is measured exactly on the same flops.  All
trainings take days.  A second call continues the first: runs in OUT go on, and runs in the table are skipped.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import rich_click as click

from mccfr import Evaluation, Run, evaluate, solve
from mccfr.runs.session.similar_runs import EXACT, TABLE, MeasuredRun, measured_runs

BUCKETS = (1_000, 5_000, 25_000)
FLOPS, SEED, WORKERS = 30, 1, 2
_RECIPE = """
[flop]
features = "histogram"
buckets = {0}
[turn]
features = "histogram"
buckets = {0}
[river]
features = "ochs"
buckets = {0}
"""
_UNMEASURED = {"method": ["lbr"], "at_nodes": [], "at_end": False, "every_checkpoint": False, "keep": False}


@dataclass(frozen=True)
class Series:
    """Runs of one recipe; `unit` is the key of `[run]` that limits them: nodes, or iterations of CFR-BR."""

    recipe: str
    unit: str
    lengths: Sequence[int]


SERIES = (
    Series("hunl-quick", "nodes", (20_000_000_000, 60_000_000_000, 200_000_000_000)),
    Series("hunl-safe", "iterations", (12_000, 40_000, 120_000)),
)


def measured(series: Series, buckets: int, out: Path, table: Path) -> Iterator[MeasuredRun]:
    """Train and measure a series on a number of buckets; yield the runs that the table does not have."""
    name = f"{series.recipe}-{buckets}"
    recipe = out / f"buckets-{buckets}.toml"
    recipe.write_text(_RECIPE.format(buckets), encoding="utf-8")
    paths = {"abstraction.path": str(out / f"buckets-{buckets}"), "abstraction.recipe": str(recipe)}
    keys = {f"evaluation.{key}": value for key, value in _UNMEASURED.items()}
    for length in series.lengths:
        if any(_is_of(run, series, buckets, length) for run in measured_runs(table)):
            continue
        limit = {f"run.{series.unit}": length}
        run = solve(series.recipe, out / name, overrides={**paths, **keys, **limit}, progress=print)
        found = evaluate(run, "exact", flops=FLOPS, seed=SEED, workers=WORKERS)
        yield _row(series, run, found)


def _is_of(run: MeasuredRun, series: Series, buckets: int, length: int) -> bool:
    """Return whether a row has a series, buckets and length; runs exceed their limit by some nodes."""
    return (
        run.recipe == series.recipe
        and run.buckets[-1] == buckets
        and run.measure == _measure()
        and 1 <= run.length / length < 1.01
    )


def _measure() -> str:
    return f"{EXACT} on {FLOPS} flops"


def _row(series: Series, run: Run, found: Evaluation) -> MeasuredRun:
    game, counts_nodes = run._open().build_game(), series.unit == "nodes"
    low, high = found.record["ci95_mbb"]
    assert found.exploitability_mbb is not None
    return MeasuredRun(
        series.recipe,
        (),
        tuple(game.buckets.reshape(-1, game.tree.players)[:, 0].tolist()),
        int(game.infosets.sum()),
        found.nodes_touched if counts_nodes else None,
        None if counts_nodes else found.iterations,
        round(found.exploitability_mbb),
        round(low),
        round(high),
        _measure(),
    )


def add_row(run: MeasuredRun, table: Path) -> None:
    """Append a measured run to a table."""
    columns = [field.name for field in fields(MeasuredRun)]
    row = {key: " ".join(map(str, value)) if isinstance(value, tuple) else value for key, value in asdict(run).items()}
    with table.open("a", encoding="utf-8", newline="") as file:
        csv.DictWriter(file, columns, lineterminator="\n").writerow(row)
    measured_runs.cache_clear()


@click.command()
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@click.option("--table", type=click.Path(path_type=Path), default=TABLE, show_default=True, help="CSV file.")
@click.option("--recipe", type=click.Choice([each.recipe for each in SERIES]), help="Only this recipe.")
@click.option("--buckets", type=click.Choice(list(map(str, BUCKETS))), help="Only this number of buckets.")
def main(out: Path, table: Path, recipe: str | None, buckets: str | None) -> None:
    """Train runs in OUT, measure them, and append them to the table."""
    out.mkdir(parents=True, exist_ok=True)
    for series in (each for each in SERIES if recipe in (None, each.recipe)):
        for count in BUCKETS if buckets is None else (int(buckets),):
            for run in measured(series, count, out, table):
                add_row(run, table)
                click.echo(run)


if __name__ == "__main__":
    main()
