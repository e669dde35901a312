"""Deep CFR: processor time of traversals, of a step of a fit, of an evaluation of all infosets and of an iteration.

OpenSpiel's solver is measured beside it on Leduc where the user has installed what it needs; this project asks for none
of that.
"""

import importlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import rich_click as click

from mccfr.config.games import FlopHoldemGame, LeducGame
from mccfr.config.solvers import DeepCfrConfig
from mccfr.config.tables import Config
from mccfr.games.catalogue import build_game
from mccfr.solvers.deep.algorithm import DeepCfr
from mccfr.solvers.deep.blas import one_thread
from mccfr.solvers.deep.dealt import card_values, draw_hands
from mccfr.solvers.deep.dealt_cfr import DealtCfr
from mccfr.solvers.deep.fitting import Descent, MergedBatches, fit
from mccfr.solvers.deep.single_deep_cfr import SingleDeepCfr
from mccfr.solvers.deep.tabulated import Tabulation, own_decisions
from mccfr.tables.layout import private_tables

_TIMES = 5  # measured so many times each, and the median told
_HANDS = 2000  # of Flop Hold'em, whose decisions a network is evaluated at


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
    _tell(case.name, network.size, options, thousand, minibatch, 2 * evaluation)
    infosets = len(learned.infosets)
    click.echo(f"  {infosets:,} infosets of both players, {held:,} samples; step of the whole memory {whole:.3f} ms")


def _measure_dealt(iterations: int, steps: int) -> None:
    """Flop Hold'em, where an evaluation is of one network of each player at every infoset, told by a sample of them."""
    config = FlopHoldemGame()
    game = build_game(config, None, None)
    options = DeepCfrConfig(traversals=2000, steps=5, horizon=iterations + 2, memory=400_000)
    tables = private_tables(DeepCfr(Config(game=config, solver=options)).layout(game))
    cfr = DealtCfr(game, options, tables)
    cfr.iterate(iterations)
    dealt, parameters = cfr.dealt, tables["network/player0"].copy()
    seen, descent = dealt.view, Descent(steps, 1e-3, True, 1.0)
    strategies = dealt.strategies((tables["network/player0"], tables["network/player1"]))
    thousand = _milliseconds(lambda: cfr._part(strategies, 0, 0, 0, 1000))
    step = _milliseconds(lambda: fit(dealt.network, parameters, dealt.batches(0, 0), descent)) / steps
    hands = draw_hands(0, 0, _HANDS, seen.known[-1]).seen(0, seen.known[-1], seen.cards)
    own, values = own_decisions(game.tree, 2 * (game.tree.streets - 1)), card_values(seen, hands)
    part = _milliseconds(lambda: Tabulation(dealt, ([], [])).played(own, parameters, values))
    evaluation = part / (_HANDS * len(own.node)) * int(game.infosets.sum())
    _tell("flop-holdem", dealt.network.size, options, thousand, step, evaluation)


def _tell(name: str, parameters: int, options: DeepCfrConfig, thousand: float, step: float, evaluation: float) -> None:
    real = DeepCfrConfig().steps
    iteration = 2 * (thousand * options.traversals / 1000 + real * step)
    click.echo(
        f"{name}: {parameters:,} parameters; ms: 1,000 traversals {thousand:.2f}, step of {options.batch:,} samples "
        f"{step:.3f}, a network of each player at all infosets {evaluation:,.2f}, iteration of {options.traversals:,} "
        f"traversals and {real} steps a player, without that, {iteration:,.0f}"
    )


def _measure_openspiel(traversals: int, steps: int) -> None:
    """OpenSpiel's Deep CFR on Leduc, by its inner functions: it has no others that do one of the two."""
    solver = _openspiel_solver()
    if solver is None:
        click.echo(
            "OpenSpiel's solver is not measured: it needs open_spiel, and torch, or jax with flax, optax and chex"
        )
        return
    root, batch = solver._root_node, DeepCfrConfig().batch

    def walk() -> None:
        for _ in range(traversals):
            solver._traverse_game_tree(root, 0)

    while _samples(solver) < int(batch):
        walk()
    walked = _milliseconds(walk) * 1000 / traversals
    solver._advantage_network_train_steps = steps
    step = _milliseconds(lambda: solver._learn_advantage_network(0)) / steps
    click.echo(
        f"OpenSpiel's solver ({solver.__module__}): ms: 1,000 traversals {walked:,.0f}, step of {batch:,} samples "
        f"{step:.2f}"
    )


def _openspiel_solver() -> Any:
    """A solver with the networks of our default on Leduc with suits apart; None where it cannot be imported."""
    units = (DeepCfrConfig().units,) * DeepCfrConfig().layers
    for library in ("pytorch", "jax"):
        try:
            game = importlib.import_module("pyspiel").load_game("leduc_poker")
            found = importlib.import_module(f"open_spiel.python.{library}.deep_cfr")
        except ImportError:
            continue
        return found.DeepCFRSolver(
            game,
            policy_network_layers=units,
            advantage_network_layers=units,
            batch_size_advantage=DeepCfrConfig().batch,
            learning_rate=DeepCfrConfig().learning_rate,
        )
    return None


def _samples(solver: Any) -> int:
    """How many the memory of player 0 holds; there is none before the first traversal."""
    memory = solver._advantage_memories[0]
    return 0 if memory is None else len(memory)


@click.command()
@click.option("--iterations", default=60, help="Iterations that fill memories before anything is measured.")
@click.option("--steps", default=20, help="Steps of a fit that is measured.")
def deep(iterations: int, steps: int) -> None:
    """Deep CFR on Leduc, 12-rank Leduc and Flop Hold'em, beside the machine's matrix product and OpenSpiel's solver."""
    click.echo(f"numpy {np.__version__}, Python {sys.version.split()[0]}, matrix product {_product():.0f} GFLOP/s")
    for case in CASES:
        _measure(case, iterations, steps)
    _measure_dealt(max(1, iterations // 10), steps)
    _measure_openspiel(5, steps)
