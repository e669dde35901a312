"""Solves small games by linear programming (scipy's HiGHS), to check solvers.

The sequence form (von Stengel 1996): x and y are the players' realisation plans, the probability of a sequence of own
actions. E x = e and F y = f express that the actions of a row share the probability of the sequence before it. A holds
player 0's payoffs times the probability of chance. Player 0 solves  max f·v  subject to  Fᵀ v <= Aᵀ x,  E x = e,
x >= 0.  Player 1 solves the same for -Aᵀ. The solver's tolerance is about 1e-7.
"""

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from expansion import joined

from mccfr.games.game import Game
from mccfr.games.history_tree import expand
from mccfr.solvers.histories.sequences import SequenceForm, Sequences, sequence_form
from mccfr.tables.strategy import Strategy
from mccfr.trees.compiled import NO_SLOT, TERMINAL


class Equilibrium(NamedTuple):
    """Player 0's value in chips (without `offset_chips`), and optimal strategies."""

    value_chips: float
    strategy: Strategy


def solve_linear_program(game: Game) -> Equilibrium:
    """Return value and optimal strategies of a game whose tree has every history.

    A strategy's weight is the probability with which its owner's own play leads to the row; rows that it never reaches
    play uniformly.  Raises `ValueError` for a game with cards beside its tree, without perfect recall, or too large for
    the solver.
    """
    form = sequence_form(game)
    sequences, payoffs = form.players, _payoffs(game, form)
    constraints = [_constraints(one) for one in sequences]
    value_0, plan_0 = _maximin(payoffs, constraints[0], constraints[1])
    value_1, plan_1 = _maximin(-payoffs.T.tocsr(), constraints[1], constraints[0])
    behaviour = [_behaviour(plan, one) for plan, one in zip((plan_0, plan_1), sequences, strict=True)]
    strategy = Strategy((behaviour[0][0][None], behaviour[1][0][None]), (behaviour[0][1][None], behaviour[1][1][None]))
    return Equilibrium((value_0 - value_1) / 2, strategy)


def restricted_value(
    game: Game, responder: int, fixed: Strategy, locked: tuple[npt.NDArray[np.float64], ...], share: float
) -> float:
    """Return the value of the restricted game to `responder`, without `offset_chips`.

    game    with listed cards
    fixed   the opponent's strategy; the responder's part is not read
    locked  B x [buckets, slots] probabilities that are locked; -1: free
    share   probability of `fixed`; otherwise the opponent is free, except for locks
    """
    expanded = expand(game)
    form = sequence_form(expanded.game)

    own, other = (_locked_constraints(form.players[p], joined(expanded, locked, p)) for p in (responder, 1 - responder))
    payoffs = _payoffs(expanded.game, form)
    payoffs = payoffs if responder == 0 else -payoffs.T.tocsr()
    plan = _plan(joined(expanded, fixed.probability, 1 - responder), form.players[1 - responder])
    met = _scipy("sparse").csr_array((1 - share) * payoffs).tolil()
    met[:, [0]] += share * (payoffs @ plan)[:, None]  # the opponent's empty sequence has probability 1
    return _maximin(met.tocsr(), own, other)[0]


def _plan(probability: npt.NDArray[np.float64], one: Sequences) -> npt.NDArray[np.float64]:
    """[1+S] realisation plan of probabilities by slot."""
    plan = np.ones(1 + len(one.row_of))
    for slot, row in enumerate(one.row_of.tolist()):  # a row's slots come after the slot above it
        plan[1 + slot] = probability[slot] * plan[1 + one.above[row] if one.above[row] != NO_SLOT else 0]
    return plan


def _locked_constraints(one: Sequences, locked: npt.NDArray[np.float64]) -> Any:
    """Return `_constraints` with a further row for each locked slot, which fixes its share."""
    slots = np.flatnonzero(locked >= 0)
    above = one.above[one.row_of[slots]]
    lines = np.arange(len(slots))
    across = np.concatenate([lines, lines])
    down = np.concatenate([1 + slots, np.where(above == NO_SLOT, 0, above + 1)])
    entries = np.concatenate([np.ones(len(slots)), -locked[slots]])
    sparse = _scipy("sparse")
    more = sparse.coo_array((entries, (across, down)), shape=(len(slots), 1 + len(one.row_of)))
    return sparse.vstack([_constraints(one), more], format="csr")


def _scipy(name: str) -> Any:
    """Import a module of scipy when it is needed; the import takes a second."""
    return import_module(f"scipy.{name}")


def _payoffs(game: Game, form: SequenceForm) -> Any:
    """[1+S_0, 1+S_1] sparse payoffs of player 0 by the players' last actions (0: none, else slot + 1)."""
    arrays = game.tree.arrays
    ends = np.flatnonzero(arrays.kind == TERMINAL)
    shape = tuple(1 + len(one.row_of) for one in form.players)
    where = (form.last[0, ends] + 1, form.last[1, ends] + 1)
    return _scipy("sparse").coo_array((form.chance[ends] * arrays.fixed[ends], where), shape=shape).tocsr()


def _constraints(one: Sequences) -> Any:
    """[1+R, 1+S] sparse: the empty sequence is 1; a row's actions less the action above it are 0."""
    rows, slots = len(one.above), len(one.row_of)
    above = np.where(one.above == NO_SLOT, 0, one.above + 1)
    across = np.concatenate([[0], np.arange(1, rows + 1), 1 + one.row_of])
    down = np.concatenate([[0], above, 1 + np.arange(slots)])
    entries = np.concatenate([[1.0], np.full(rows, -1.0), np.ones(slots)])
    return _scipy("sparse").coo_array((entries, (across, down)), shape=(1 + rows, 1 + slots)).tocsr()


def _maximin(payoffs: Any, own: Any, other: Any) -> tuple[float, npt.NDArray[np.float64]]:
    """Return the maximin value of the player of the rows of `payoffs`, and an optimal plan."""
    plan, values = own.shape[1], other.shape[0]
    objective = np.zeros(plan + values)
    objective[plan] = -1.0  # the value of the other's empty sequence, to be maximised
    total = np.zeros(own.shape[0])
    total[0] = 1.0
    sparse = _scipy("sparse")
    found = _scipy("optimize").linprog(
        objective,
        A_ub=sparse.hstack([-payoffs.T, other.T], format="csr"),
        b_ub=np.zeros(other.shape[1]),
        A_eq=sparse.hstack([own, sparse.csr_array((own.shape[0], values))], format="csr"),
        b_eq=total,
        bounds=[(0, None)] * plan + [(None, None)] * values,
        method="highs",
    )
    if found.status != 0:
        raise ValueError(f"the linear program has no solution: {found.message}")
    return -float(found.fun), np.asarray(found.x[:plan])


def _behaviour(
    plan: npt.NDArray[np.float64], one: Sequences
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return probabilities by slot and weights by row of a realisation plan.

    Rows that the plan does not reach play uniformly.
    """
    cells, sizes = np.maximum(plan[1:], 0.0), np.diff(one.starts)
    weight = np.bincount(one.row_of, cells, minlength=len(sizes)).astype(np.float64)
    total = weight[one.row_of]
    probability = np.where(total > 0, cells / np.where(total > 0, total, 1.0), 1.0 / sizes[one.row_of])
    return probability, weight
