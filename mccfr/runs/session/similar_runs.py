"""Finds measured runs that are similar to a planned one, and how much they lose to a best response.

`measured_runs.csv` has the results of the configurations that come with the project, and of variants of them
(docs/measured/evaluation.md); `tools/quality.py` measures more.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from math import log
from pathlib import Path
from typing import Any

import msgspec

from mccfr.config.examples import EXAMPLES
from mccfr.config.run_tables import Config
from mccfr.config.toml_files import load_config

TABLE = Path(__file__).parents[1] / "data" / "measured_runs.csv"
EXACT = "exact"
"""First word of `MeasuredRun.measure` if the loss is exact, not a lower bound."""
_MOST = 3
_BUCKETS_FACTOR = 2.0  # most, between the numbers of buckets of similar runs on each street
_LENGTH_FACTOR = 30.0  # most, between their nodes per infoset, or boards


@dataclass(frozen=True)
class MeasuredRun:
    """A run whose strategy's loss to a best response was measured; a row of measured_runs.csv.

    recipe    name of the trained configuration, one that comes with the project
    settings  keys in which the run differs from this configuration, as "table.key=value"
    buckets   number of buckets of each street
    infosets  number of infosets of both players
    nodes     nodes touched; None: training counts boards
    boards    iterations of CFR-BR; None: training counts nodes
    mbb       loss to a best response, in mbb per game (thousandths of a big blind); exact, or a lower bound
    low, high 95 % confidence interval of mbb; None: unknown
    measure   how the loss was measured, such as "exact on 24 flops"
    """

    recipe: str
    settings: tuple[str, ...]
    buckets: tuple[int, ...]
    infosets: int
    nodes: float | None
    boards: int | None
    mbb: float
    low: float | None
    high: float | None
    measure: str

    @property
    def length(self) -> float:
        """Return the length of the training: nodes touched, or boards if it counts boards."""
        return self.nodes or self.boards or 0.0

    @property
    def nodes_per_infoset(self) -> float | None:
        """Return the nodes touched per infoset of the game; None if training counts boards."""
        return None if self.nodes is None else self.nodes / self.infosets


@cache
def measured_runs(table: Path = TABLE) -> tuple[MeasuredRun, ...]:
    """Return all measured runs of a CSV file with a column for each field."""
    with table.open(encoding="utf-8", newline="") as file:
        return tuple(_run(row) for row in csv.DictReader(file))


def _run(row: Mapping[str, str]) -> MeasuredRun:
    """Return the run of a CSV row; empty cells are None, and blanks separate the items of lists."""
    lists = {name: row[name].split() for name in ("settings", "buckets")}
    return msgspec.convert({name: text or None for name, text in row.items()} | lists, MeasuredRun, strict=False)


def similar_runs(config: Config, plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of up to three measured runs that are most like a planned one, the shortest first.

    Each result is {field of `MeasuredRun`: value}, with `nodes_per_infoset` added.

    The runs agree with the plan in game, algorithm and whether negative regrets are pruned. On each street their
    numbers of buckets differ by a factor of 2 at most. Their nodes per infoset, or boards of CFR-BR, differ by a factor
    of 30 at most, unless the plan has no known length. If the loss of one such run was measured exactly, those with a
    lower bound only are left out.

    config  configuration of the planned run
    plan    fields of `mccfr.runs.session.run_plan.make_plan`
    """
    found = sorted(_near(config, plan), key=lambda pair: pair[0])
    if any(run.measure.startswith(EXACT) for _, run in found):
        found = [pair for pair in found if pair[1].measure.startswith(EXACT)]
    chosen = sorted((run for _, run in found[:_MOST]), key=lambda run: run.length)
    return [asdict(run) | {"nodes_per_infoset": run.nodes_per_infoset} for run in chosen]


def _near(config: Config, plan: Mapping[str, Any]) -> Iterator[tuple[float, MeasuredRun]]:
    """Yield (distance, run) of each measured run that is similar to the planned one.

    The distance is the sum of two logarithms, each of a ratio of at least 1 between the two runs. The first ratio is of
    bucket counts, the largest of all streets. The second is of nodes per infoset, or of boards of CFR-BR; it is left
    out if the plan's length is not known.
    """
    buckets = [count for count, *_ in plan["buckets_per_street"]]
    for run in measured_runs():
        reference = _reference(run)
        if reference.game != config.game or _training(reference) != _training(config):
            continue
        apart = max(abs(log(one / other)) for one, other in zip(run.buckets, buckets, strict=True))
        length = plan["iterations"] if run.nodes is None else plan["run_nodes"]
        longer = 0.0
        if length:
            scale = plan["infosets"] / run.infosets if run.nodes is not None else 1.0
            longer = abs(log(length / (run.length * scale)))
        if apart <= log(_BUCKETS_FACTOR) and longer <= log(_LENGTH_FACTOR):
            yield apart + longer, run


@cache
def _reference(run: MeasuredRun) -> Config:
    return load_config(EXAMPLES / f"{run.recipe}.toml", run.settings)


def _training(config: Config) -> tuple[type, bool]:
    """Return the class of the `[solver]` table, and whether training prunes negative regrets."""
    return type(config.solver), bool(getattr(config.solver, "negative_regret_pruning", False))
