"""`tools/bench resolving`: how long a river or a turn takes to solve again to a precision, by each method."""

import time

import numpy as np
import rich_click as click

from abstraction.cards import parse_cards
from mccfr.config.games import Menu
from mccfr.games.betting import BettingState
from mccfr.games.holdem_betting import holdem_rules
from mccfr.play.resolving import METHODS, Effort, Spot, resolve
from mccfr.play.resolving.endgame import MENU, TURN_MENU, endgame
from mccfr.solvers.variants import PRESETS
from mccfr.tables.strategy import uniform_strategy

_BOARD = parse_cards("Kc7d2s9hTd")
_STREET = {"turn": 2, "river": 3}
_MOST = 20_000


@click.command("resolving")
@click.argument("street", type=click.Choice(list(_STREET)))
@click.option("--pot", default=1_000.0, show_default=True, help="Chips, of stacks of 20,000.")
@click.option("--precision", default=0.5, show_default=True, help="Of the pot, in per cent: the gadget's gap.")
@click.option("--iterations", default=_MOST, show_default=True, help="The most; the gap is told in any case.")
@click.option("--variant", type=click.Choice(list(PRESETS)), default="dcfr+", show_default=True)
@click.option("--seed", default=0, show_default=True, help="Of the ranges, which are uneven.")
def resolving(street: str, pot: float, precision: float, iterations: int, variant: str, seed: int) -> None:
    """Processor seconds of one core, iterations and gap, kernels being ready.

    The opponent's alternatives are what he would win from uniform play.
    """
    rules = holdem_rules(20_000, (50, 100), 0, Menu())
    state = BettingState((pot / 2, pot / 2), 0, _STREET[street], last_raise=100, put_in_before=pot / 2)
    began = time.process_time()
    game = endgame(rules, state, _BOARD[: _STREET[street] + 2], MENU if street == "river" else TURN_MENU)
    spot = Spot(game, 0, 0)
    ranges = spot.weights * np.random.default_rng(seed).random((2, len(spot.weights[0]))) ** 3
    tables = [table.T for table in uniform_strategy(spot.game).probability]
    values = spot.best_response(1, ranges[0], tables).value
    click.echo(f"{street}, {len(game.tree.decisions)} decisions: {time.process_time() - began:.2f} s to prepare")
    for method in METHODS:
        resolve(spot, 0, ranges, values, method, Effort(1), variant=PRESETS[variant], dtype="float32")
        began = time.process_time()
        effort = Effort(iterations, precision_chips=precision / 100 * pot)
        found = resolve(spot, 0, ranges, values, method, effort, variant=PRESETS[variant], dtype="float32")
        taken = time.process_time() - began
        gap = 100 * found.gap_chips / pot
        click.echo(f"{method}: {taken:.2f} s, {found.iterations} iterations, gap {gap:.2f} % of the pot")
