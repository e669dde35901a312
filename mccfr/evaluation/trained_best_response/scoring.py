"""Chips of responders against a policy, board by board, for choosing and for scoring."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.common.rng import EVALUATION
from mccfr.evaluation.head_to_head import PolicyPair, boards_in_both_seats, check_strategy
from mccfr.evaluation.samples import SampledEvaluation
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.public.sampled_board import BoardSource
from mccfr.tables.table_layout import table_name

Floats = npt.NDArray[np.float64]


class ResponderScores(SampledEvaluation):
    """Boards on which R responders play a policy, to choose one or to score it.

    A sample has 2·R + 1 numbers: each responder's chips in seat 0 and seat 1, summed over pairs of hands, and the
    board's weight.
    """

    def __init__(self, responders: Sequence[Profile], policy: Profile, seed: int, purpose: int) -> None:
        """Take responders of one game and the policy; `purpose` selects the random stream of boards."""
        self.step = "(scoring a responder) board" if purpose == EVALUATION else "(choosing a responder) board"
        for side in (*responders, policy):
            check_strategy(side)
        games = responders[0].game, policy.game
        self._sources = [BoardSource(game, np.float64, seed, purpose=purpose, ordered=True) for game in games]
        self._tables = [PolicyPair(responder, policy) for responder in responders]
        self.most = self._sources[0].listed
        self.sides, self.what = (*responders, policy), {"method": "trained-br", "seed": seed}
        self.fields = 2 * len(responders) + 1

    def play(self, sample: int) -> Floats:
        """Return one board's chips and weight."""
        as_first, as_second = boards_in_both_seats(self._sources, sample, same=False)
        found = []
        for table in self._tables:
            (first, weight), (second, _) = table.play(as_first, 0), table.play(as_second, 1)
            found += [first, -second]
        return np.array([*found, weight])


@dataclass
class ChosenResponder:
    """The best responder of a seat so far.

    value_chips  chips per hand on the choosing boards
    nodes        touched in its training
    way          its way to play by regrets
    cells        by block number, the seat's arrays for `learnt_strategy`
    """

    value_chips: float
    nodes: int
    way: str
    cells: dict[int, npt.NDArray[np.float32]]


@dataclass
class Chosen:
    """The best responder of each seat so far; empty before the first choice."""

    seats: list[ChosenResponder] = field(default_factory=list)

    def take(
        self, learnt: Sequence[npt.NDArray[np.float32]], value_chips: Sequence[float], nodes: Sequence[int], way: str
    ) -> None:
        """Replace each seat's responder if the candidate wins more."""
        for seat in range(2):
            candidate = ChosenResponder(
                float(value_chips[seat]), nodes[seat], way, dict(list(enumerate(learnt))[seat::2])
            )
            if seat == len(self.seats):
                self.seats.append(candidate)
            elif candidate.value_chips > self.seats[seat].value_chips:
                self.seats[seat] = candidate

    @property
    def learnt(self) -> list[npt.NDArray[np.float32]]:
        """Cells of each block of both chosen responders."""
        cells = self.seats[0].cells | self.seats[1].cells
        return [cells[block] for block in range(len(cells))]

    def arrays(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return the tables by name."""
        cells = [each for seat in self.seats for each in seat.cells.items()]
        return {table_name("chosen", block): table for block, table in cells if table.size}

    def states(self) -> list[dict[str, Any]]:
        """Return the other fields for JSON."""
        return [{"worth": seat.value_chips, "nodes": seat.nodes, "way": seat.way} for seat in self.seats]
