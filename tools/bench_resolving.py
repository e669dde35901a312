"""`tools/bench resolving`: time for re-solving a river or turn to a precision, by each method.

For a flop of a policy it also measures how exploitable the solution is.
"""

import re
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import rich_click as click

from abstraction.cards import cards_text, parse_cards
from mccfr import load_policy
from mccfr.config.game_tables import Menu
from mccfr.games.betting import BettingState
from mccfr.games.holdem_betting import holdem_rules
from mccfr.play.policy_seat import Seat
from mccfr.play.resolving.real_endgame import MENU, TURN_MENU, endgame
from mccfr.play.resolving.resolving_spot import Spot
from mccfr.play.resolving.resolving_table import PublicState, Resolver, Settings
from mccfr.play.resolving.solve import METHODS, Effort, resolve
from mccfr.solvers.variants import PRESETS
from mccfr.tables.strategy import uniform_strategy

_BOARD = parse_cards("Kc7d2s9hTd")
_STREET = {"turn": 2, "river": 3}
_ACTION = re.compile(r"[fc]|r\d+")
_MOST = 20_000


@click.command("resolving")
@click.argument("street", type=click.Choice(["flop", *_STREET]))
@click.option("--pot", default=1_000.0, show_default=True, help="Pot in chips; stacks are 20,000.")
@click.option("--precision", default=0.5, show_default=True, help="Gap to reach, in % of the pot.")
@click.option("--iterations", default=_MOST, show_default=True, help="Maximum; the gap is printed in any case.")
@click.option("--variant", type=click.Choice(list(PRESETS)), default="dcfr+", show_default=True)
@click.option("--seed", default=0, show_default=True, help="Of random ranges, or of flops.")
@click.option("--policy", type=click.Path(path_type=Path), help="For flops. Of the options above it uses only --seed.")
@click.option("--line", default="r300c", show_default=True, help="Preflop line to the flop.")
@click.option("--boards", default=6, show_default=True, help="Number of flops, each solved for both players.")
def resolving(
    street: str,
    pot: float,
    precision: float,
    iterations: int,
    variant: str,
    seed: int,
    policy: Path | None,
    line: str,
    boards: int,
) -> None:
    """Measure processor seconds, iterations and gap of each re-solving method, without compilation.

    The opponent's alternatives are the values of a best response to uniform play, or on a flop to the policy.
    """
    if street == "flop":
        if policy is None:
            raise click.UsageError("a flop is solved on a policy's buckets: name it by --policy")
        _flops(Resolver(Seat(load_policy(policy)), Settings("flop")), line, boards, seed)
        return
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
        resolve(spot, 0, ranges, values, method, Effort(1), variant=PRESETS[variant])
        began = time.process_time()
        effort = Effort(iterations, precision_chips=precision / 100 * pot)
        found = resolve(spot, 0, ranges, values, method, effort, variant=PRESETS[variant])
        taken = time.process_time() - began
        gap = 100 * found.gap_chips / pot
        click.echo(f"{method}: {taken:.2f} s, {found.iterations} iterations, gap {gap:.2f} % of the pot")


def _flops(resolver: Resolver, line: str, boards: int, seed: int) -> None:
    """Print one line for each flop and player, with figures in percent of the pot.

    It has an upper bound of the opponent's gain by re-solving, and the values of best responses to both strategies.
    """
    state, acted, random = resolver.seat.betting.start()[0], [], np.random.default_rng(seed)
    for action in _ACTION.findall(line):
        acted.append((state, action, ()))
        state = resolver.seat.betting.apply(state, action)
    assert isinstance(state, BettingState) and state.street == 1, "the line ends where the flop is dealt"
    pot = sum(state.put_in)
    for board in [tuple(random.choice(52, 3, replace=False).tolist()) for _ in range(boards)]:
        for position in range(2):
            began = time.process_time()
            here = resolver.begin(position, acted, state, board)
            taken = time.process_time() - began
            dealing = resolver.seat.dealing
            before, after = (100 * each / pot for each in _lost(here, dealing.disjoint_weight(here.ranges[position])))
            click.echo(
                f"{cards_text(board)}, player {position}: {taken:.2f} s; gives away at most "
                f"{100 * here.excess_chips / pot:.3f} % of the pot; loses {before:.1f} % before and {after:.1f} % after"
            )


def _lost(here: PublicState, possible: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return chips per hand that best responses win from the policy, and from the solution.

    possible  [H] for each hand of the opponent, the weight of the policy's hands that share no card with it
    """
    found, theirs = here.found, here.ranges[1 - here.position]
    assert found is not None and found.alternatives is not None
    together = float(theirs @ possible)
    return float(theirs @ found.alternatives) / together, float(theirs @ found.values) / together
