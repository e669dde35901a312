"""Exploitability inside the abstracted game: the best responder sees only buckets, like the strategy.

Training minimises this figure; `exact` measures the real game. The difference is the cost of the abstraction.

With perfect recall, policy iteration finds the best response. Each traversal of the public tree gives the
counterfactual value of every action of the responder at every bucket (Zinkevich et al. 2007, "Regret minimization in
games with incomplete information", section 3.1). The responder then takes the best action everywhere. The number of
rounds needed is the largest number of the responder's decisions on one line. With imperfect recall this method does
not apply.
"""

import numpy as np
import numpy.typing as npt

from mccfr.evaluation.exact import ExactEvaluation
from mccfr.games.game import Game
from mccfr.games.perfect_recall import forgotten_street
from mccfr.solvers.minimisers import Step
from mccfr.solvers.public.public_tree import PublicTree, public_tree
from mccfr.solvers.public.public_walk import Scope, step_rows, train
from mccfr.solvers.public.street_arrays import FOLLOW, Views, new_scratch, street_tables
from mccfr.solvers.public.walk_threads import alone
from mccfr.tables.strategy import Strategy, row_starts
from mccfr.trees.compiled import NO_PARENT

_STEP = Step(None, None, 1.0, 1.0, 1.0, 1.0)


def abstract_problem(game: Game) -> str | None:
    """Return why the abstract exploitability of a game cannot be computed, or None if it can."""
    if not game.cards.dealt:
        return f"{game.name} deals no cards outside of its tree, so that nothing is abstracted: use the method exact"
    if not game.cards.can_list:
        return (
            f"{game.name} has too many boards to list them: use the method sampled-br, whose responder knows its cards"
        )
    street = forgotten_street(game)
    if street is None:
        return None
    return (
        f"{game.name} has imperfect recall: buckets on street {game.street_name(street)} do not say which bucket a "
        "hand had before, so a best response by buckets has no order to be found in; use the method exact or "
        "sampled-br, whose responder knows its cards"
    )


def evaluate_abstract(game: Game, strategy: Strategy) -> ExactEvaluation:
    """Evaluate a strategy among players who see only buckets; `ValueError` as in `abstract_problem`."""
    if (problem := abstract_problem(game)) is not None:
        raise ValueError(problem)
    public = public_tree(game)
    value, first = _respond(game, public, strategy, 0)
    _, second = _respond(game, public, strategy, 1)
    offset = game.offset_chips
    return ExactEvaluation(value + offset, (first + offset, second - offset), (first + second) / 2)


def _respond(game: Game, public: PublicTree, strategy: Strategy, player: int) -> tuple[float, float]:
    """Return the player's chips when following the strategy, and with a best response by buckets."""
    basis = [np.array(table.T, np.float64, order="C") for table in strategy.probability]
    values = [np.zeros_like(table) for table in basis]
    sums = [np.zeros_like(table) for table in basis]
    views = tuple(
        Views(street_tables(values, side), street_tables(basis, side), street_tables(sums, side)) for side in range(2)
    )
    root, scratch = (new_scratch(public, streets, np.float64) for streets in (range(1), range(1, public.streets)))
    scope = Scope(player, player, *public.boards.root.tolist())
    starts = [row_starts(game, block) for block in range(2 * game.tree.streets)]
    chips: list[float] = []
    for _ in range(_longest(game, player) + 1):
        for block in range(player, len(values), 2):
            values[block].fill(0)
        root.by_hand.value.fill(0)
        train(public, views, step_rows([_STEP], 0), scope, root, scratch, alone(public))
        chips.append(float(root.by_hand.value[0, FOLLOW] @ public.reach[player]) / public.joint_weight)
        for block in range(player, len(values), 2):
            _take_best(starts[block], values[block], basis[block])
    return chips[0], chips[-1]


def _take_best(starts: npt.NDArray[np.int64], values: npt.NDArray[np.float64], basis: npt.NDArray[np.float64]) -> None:
    """Set `basis` to the best action of each row and bucket, in place; `values` are [slots, buckets]."""
    for slot, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        best = values[slot:stop].argmax(axis=0)
        basis[slot:stop] = np.arange(stop - slot)[:, None] == best


def _longest(game: Game, player: int) -> int:
    """Return the largest number of decisions of a player on one line."""
    arrays = game.tree.arrays
    count = np.zeros(len(arrays.kind), np.int64)
    for node, above in enumerate(game.tree.parent.tolist()):  # parents come first
        count[node] = (0 if above == NO_PARENT else count[above]) + int(arrays.player[node] == player)
    return int(count.max())
