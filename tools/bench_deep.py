"""Deep CFR: processor time of traversals, of a step of a fit, of an evaluation of all infosets and of an iteration."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import rich_click as click

from mccfr.config.tables import Config, DeepCfrConfig, LeducGame
from mccfr.games.catalogue import build_game
from mccfr.solvers.deep.blas import one_thread
from mccfr.solvers.deep.fitting import Descent, MergedBatches, fit
from mccfr.solvers.deep.single_deep_cfr import SingleDeepCfr
from mccfr.solvers.deep_cfr import DeepCfr
from mccfr.tables.layout import private_tables

_TIMES = 5  # measured so many times each, and the median told


@dataclass(frozen=True)
class _Case:
    name: str
    game: LeducGame
    options: dict[str, Any]


CASES = (
    _Case("leduc", LeducGame(merge_suits=True), {}),
    _Case(
        "leduc-12",
        LeducGame(ranks=12, raises=6, merge_suits=True),
        {"traversals": 8800, "network": "branches", "card_units": 64, "batch": 2816},
    ),
)


def _milliseconds(work: Callable[[], object]) -> float:
    """Processor time of this process, median of some calls."""
    work()
    taken = []
    for _ in range(_TIMES):
        began = time.process_time()
        work()
        taken.append(1000 * (time.process_time() - began))
    return median(taken)


def _product(size: int = 512) -> float:
    """GFLOP a second of this machine's own matrix product in float32, one thread."""
    one_thread()
    one = np.random.default_rng(0).normal(size=(size, size)).astype(np.float32)
    return 2 * size**3 / (_milliseconds(lambda: [one @ one for _ in range(10)]) / 10) / 1e6


def _measure(case: _Case, iterations: int, steps: int) -> None:
    game, options = build_game(case.game, None, None), DeepCfrConfig(steps=5, horizon=iterations + 2, **case.options)
    algorithm = DeepCfr(Config(game=case.game, solver=options))
    tables = private_tables(algorithm.layout(game))
    cfr = SingleDeepCfr(game, options, tables)
    cfr.iterate(iterations)  # memories as they are in a run
    learned = cfr.learned
    (network, inputs), (memory, held) = learned.networks[0], learned.memory(0)
    parameters, merged = tables["network/player0"].copy(), learned.merged[0]

    def fitted(batch: int | None) -> float:
        batches, descent = MergedBatches(inputs, memory, held, batch, merged, 0), Descent(steps, 1e-3, True, 1.0)
        return _milliseconds(lambda: fit(network, parameters, batches, descent)) / steps

    thousand = _milliseconds(lambda: cfr._part(0, 0, 0, 1000))
    minibatch, whole = fitted(int(options.batch)), fitted(None)
    evaluation = _milliseconds(lambda: learned.advantages(0))
    real = DeepCfrConfig().steps
    iteration = 2 * (thousand * options.traversals / 1000 + evaluation + real * minibatch)
    click.echo(
        f"{case.name}: {network.size:,} parameters, {len(learned.infosets):,} infosets, {held:,} samples; ms: 1,000 "
        f"traversals {thousand:.2f}, step of {options.batch:,} samples {minibatch:.3f}, of the whole memory "
        f"{whole:.3f}, all infosets of a player {evaluation:.2f}, iteration of {real} steps {iteration:.0f}"
    )


@click.command()
@click.option("--iterations", default=60, help="Iterations that fill memories before anything is measured.")
@click.option("--steps", default=20, help="Steps of a fit that is measured.")
def deep(iterations: int, steps: int) -> None:
    """Deep CFR on Leduc and on Leduc with 12 ranks, beside the machine's own matrix product."""
    click.echo(f"numpy {np.__version__}, Python {sys.version.split()[0]}, matrix product {_product():.0f} GFLOP/s")
    for case in CASES:
        _measure(case, iterations, steps)
