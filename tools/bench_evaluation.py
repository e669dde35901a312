"""`tools/bench evaluation`: what sampled evaluations cost, in hands a second of processor time."""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import rich_click as click

from mccfr.cards.deck import WholeDeck
from mccfr.config.games import HoldemGame, Menu
from mccfr.evaluation.head_to_head import Table
from mccfr.evaluation.local_best_response import SETTINGS, local_best_response
from mccfr.evaluation.trained_best_response.scoring import Won
from mccfr.evaluation.trained_best_response.training import WAYS, Training
from mccfr.games.betting import build_tree
from mccfr.games.game import Game
from mccfr.games.holdem_betting import holdem_rules
from mccfr.games.real_rules import real_rules
from mccfr.policy import Policy
from mccfr.policy.profile import Profile
from mccfr.rng import CHOICE, EVALUATION
from mccfr.solvers.public.sampled_board import BoardSource, by_strength
from mccfr.solvers.responder import PUBLIC, SAMPLERS
from mccfr.tables.strategy import Strategy

_BUCKETS = 200
_MENU = Menu(first=("1p", "allin"), later=("1p", "allin"))
_MENU_M = Menu(first=("0.5p", "1p", "allin"), later=("1p", "allin"))


class _RandomDeck(WholeDeck):
    """Buckets of hands that are told apart by nothing but a hash of hand and board."""

    def bucket_row(self, street: int, player: int, board: Sequence[int]) -> npt.NDArray[np.int32]:
        return np.random.default_rng(sum(board)).integers(0, _BUCKETS, 1326, np.int32)


def _random_side(menu: Menu = _MENU) -> Profile:
    """Whole hold'em, by default with the menu of hunl-quick; 200 buckets a street, every row random."""
    config = HoldemGame(menu=menu)
    deck = _RandomDeck((0, 3, 1, 1), np.full((4, 2), _BUCKETS), lambda: [])
    tree = build_tree(holdem_rules(config.stack, config.blinds, config.ante, menu))
    game = Game("holdem", tree, deck, big_blind_chips=100, pot_chips=150, real_rules=real_rules(config))
    rng, tables = np.random.default_rng(0), []
    for block, slots in enumerate(tree.row_slots.tolist()):
        table = rng.random((_BUCKETS, slots))
        for node in tree.decisions[tree.arrays.block[tree.decisions] == block].tolist():
            row = slice(int(tree.arrays.slot[node]), int(tree.arrays.slot[node] + tree.arrays.count[node]))
            table[:, row] /= table[:, row].sum(axis=1, keepdims=True)
        tables.append(table)
    weights = [np.ones((_BUCKETS, int(rows))) for rows in tree.row_count]
    return Profile(game, Strategy(tuple(tables), tuple(weights)))


@click.command()
@click.option("--policy", type=click.Path(exists=True, path_type=Path), help="Of whole hold'em; default: a random one.")
@click.option("--hands", default=1000, show_default=True, help="Deals of each setting, each played from both seats.")
@click.option("--setting", multiple=True, default=tuple(SETTINGS), show_default=True, help="May be repeated.")
@click.option("--nodes", default=1_000_000, show_default=True, help="Touched while a responder is trained; 0: none is.")
@click.option("--boards", default=20, show_default=True, help="Full boards of menu M that are walked; 0: none is.")
def evaluation(policy: Path | None, hands: int, setting: tuple[str, ...], nodes: int, boards: int) -> None:
    """Local best response, setting by setting: deals a second of processor time, and seconds to ±50 mbb/g.

    Then an opponent who is trained against it, by either sampler where it has bucket tables: nodes a second, and a
    board of his score.  Then one full board, all hands of both players, in the tree of menu M (38,322 nodes), random
    rows on 200 buckets, in one seating.

    A random policy is an easy victim, whose figures vary more than those of one that was trained.
    """
    if policy is None:
        side = _random_side()
    else:
        opened = Policy.open(policy)
        side = Profile(opened.game, opened.strategy())
    for name in setting:
        local_best_response(side, name, 100)  # kernels are compiled, files are in memory
        began = time.process_time()
        found = local_best_response(side, name, hands)
        spent = time.process_time() - began
        mbb = 1000 / (side.game.big_blind_chips or 1)
        low, high = (chips * mbb for chips in found.ci95_chips)
        half = (high - low) / 2
        click.echo(
            f"lbr, setting {name}: {hands / spent:,.0f} deals/s of processor time, "
            f"{found.mean_chips * mbb:,.0f} ± {half:,.0f} mbb/g; ± 50 in {spent * (half / 50) ** 2:,.0f} s"
        )
    samplers = SAMPLERS if policy is not None else (PUBLIC,)  # a random policy has no tables to draw deals by
    for sampler in samplers if nodes else ():
        _trained(side, sampler, nodes)
    if boards:
        _board(boards)


def _trained(side: Profile, sampler: str, nodes: int) -> None:
    """Print what training and scoring cost, in processor time."""
    training = Training(side.game, side, 0, sampler)
    training.train(1, 1, lambda: False)
    begun, began = training.nodes, time.process_time()
    training.train(nodes // 2, 1, lambda: False)
    spent = time.process_time() - began
    units = Won([Profile(side.game, training.learnt(way)) for way in WAYS], side, 0, CHOICE)
    units.play(0)
    began = time.process_time()
    for board in range(1, 21):
        units.play(board)
    click.echo(
        f"trained-br, {sampler}: {(training.nodes - begun) / spent / 1e6:,.2f} M nodes/s of processor time; "
        f"{(time.process_time() - began) / 20 * 1e3:,.0f} ms a board on which two responders are scored"
    )


def _board(boards: int) -> None:
    """Print what a walk of one full board costs, in processor time."""
    side = _random_side(_MENU_M)
    source = BoardSource(side.game, np.float64, 0, purpose=EVALUATION, arrange=by_strength)
    table, spent = Table(side, side), []
    for number in range(boards + 1):
        board = source.board(number)
        began = time.process_time()
        table.play(board, 0)
        spent.append(time.process_time() - began)
    ms = 1e3 * np.array(spent[1:])  # of the first, kernels were compiled
    click.echo(
        f"a full board, {side.game.tree.nodes:,} nodes, one seating: {np.median(ms):.1f} ms of processor time by the "
        f"median of {boards}, least {ms.min():.1f}, largest {ms.max():.1f}"
    )
