"""Solves a spot (ranges, pot, stacks, bet sizes) on many flops, each to a low exploitability.

Each flop is one sample of a sampled evaluation: flops can be solved in parallel, and a file can keep the solved ones.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.cards import card_mask, cards_text, combo_masks, parse_cards
from abstraction.range_notation import read_range
from mccfr.config.game_tables import HoldemSubgame
from mccfr.config.run_tables import Config
from mccfr.config.spot_table import spot_document
from mccfr.config.toml_files import config_from, load_config, to_document
from mccfr.evaluation.flop_values import CLASSES, FlopReport, Flops, class_sums, pair_weights
from mccfr.evaluation.samples import Effort, SampledEvaluation, run_samples
from mccfr.games.game import Game
from mccfr.games.holdem_subgame import holdem_subgame
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.directory.run import is_run, open_run
from mccfr.solvers.public.best_response import hand_values
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.solver import Share
from mccfr.tables.table_layout import private_tables
from mccfr.trees.street_amounts import street_action, tree_start

_PLAYER_COLUMNS = 4
_FLOP_CARDS = 3
_MOST_BLOCKED = 101  # hands that share a card with a hand, including itself
Floats = npt.NDArray[np.float64]


def typed_spot(path: Path) -> dict[str, Any] | None:
    """Return a spot's `[game]` keys without name and board; None if `path` is no spot.

    A spot is the rest of a hand with given ranges, pot and stacks.

    path  run directory or configuration

    Raises `ValueError` for a spot that begins after the flop, because it has no bet sizes for the flop.
    """
    if not (is_run(path) or path.suffix == ".toml"):
        return None
    config = open_run(path).config if is_run(path) else load_config(path)
    if not isinstance(config.game, HoldemSubgame) or config.game.board is None:
        return None
    if len(parse_cards(config.game.board)) != _FLOP_CARDS:
        raise ValueError(
            f"{path} is a spot on the board {config.game.board}, whose bet sizes are for later streets than the flop: "
            "give a spot that begins on a flop (mccfr spot with a board of three cards)"
        )
    document = to_document(Config(game=config.game))["game"]
    return {key: value for key, value in document.items() if key not in ("name", "board")}


def has_hands(spot: Mapping[str, Any], flops: Flops) -> npt.NDArray[np.bool_]:
    """Return [F] bool: whether both players can hold hands of their ranges on each of F flops.

    spot  `[game]` keys of a spot (ranges, pot and stacks), without board
    """
    masks, possible = combo_masks(), np.zeros(len(flops.cards), bool)
    ranges = [read_range(spot["ranges"][name]) > 0 for name in ("oop", "ip")]
    for number, cards in enumerate(flops.cards.tolist()):
        free = (masks & np.uint64(card_mask(cards))) == 0
        first, second = (masks[free & own] for own in ranges)
        blocked = len(second) <= _MOST_BLOCKED and bool(((first[:, None] & second[None, :]) != 0).all())
        possible[number] = len(first) > 0 and not blocked
    return possible


class SolvedFlops(SampledEvaluation):
    """Sampled evaluation that solves a spot (ranges, pot, stacks, sizes) on flops, one per sample.

    The values of a sample are sums over the hands of each of 169 preflop classes such as AKs (`play` lists them). The
    last value is the exploitability reached, as a share of the pot.

    pot      chips in the pot where the spot begins
    actions  texts of the actions of the first decision
    fields   number of values of a sample
    """

    least, option, step = 1, "flops", "flop"

    def __init__(self, spot: Mapping[str, Any], flops: Flops, to: float) -> None:
        """Store the spot and the flops; build the game on the first flop for the actions.

        spot   `[game]` keys of the spot, without board
        flops  flops on which both players can hold a hand
        to     exploitability to reach, as a share of the pot
        """
        self._spot, self._flops, self._to = spot, flops, to
        self.identity_fields = {"method": "solved flops", "spot": dict(spot), "to": to, "flops": flops.cards.tolist()}
        game = self._game(0)[1]
        self.pot, self.actions = (
            game.pot_chips,
            [street_action("", game.tree.label[child], tree_start(game.tree)) for child in game.tree.children(0)],
        )
        self.fields = CLASSES * (2 * _PLAYER_COLUMNS + len(self.actions)) + 1

    def _game(self, sample: int) -> tuple[Config, Game]:
        board = cards_text(self._flops.cards[sample].tolist())
        config = config_from(spot_document({**self._spot, "board": board}, self._to, 1), f"the spot on {board}")
        assert isinstance(config.game, HoldemSubgame)
        return config, holdem_subgame(config.game, Path())

    def play(self, sample: int) -> Floats:
        """Solve the spot on one flop; return [fields] sums by hand class, and the exploitability.

        A class has four sums over its hands for each player: of weight, weight·equity, weight·value, and weight again
        (the divisor for a mean value). Then follows weight·frequency of each action of the first decision, for its
        player (out of position). After all classes comes the exploitability.

        A hand's weight is its weight in the range times that of the opposing hands without a common card. Equity is a
        share of the pot, as is the exploitability; values are in chips. Solving ends when the exploitability is at most
        `to`, or at the iteration limit of spots.

        sample  index of the flop
        """
        config, game = self._game(sample)
        algorithm = algorithm_of(config)
        tables = private_tables(algorithm.layout(game))
        solver = algorithm.solver(game, tables, Share())
        for point in [*config.evaluation.at_iterations, int(config.run.iterations or 0)]:
            while solver.state.iterations < point:
                solver.run(solver.state.nodes, 1 << 62, point - solver.state.iterations)
            strategy = algorithm.averages.strategy(game, tables, solver.state.nodes, solver.state.iterations)
            value, _, gains = hand_values(game, strategy)
            reached = sum(gains) / 2 / self.pot
            if reached <= self._to:
                break
        dealing = game.table_cards()
        reach, position = dealing.reach.astype(np.float64), (0, 0, 0, dealing.read_board(0, ""))
        values = np.stack([reach * value, pair_weights(dealing, reach)])
        return np.append(class_sums(Profile(game, strategy), dealing, position, reach, values).ravel(), reached)


def solved_flops(
    spot: Mapping[str, Any],
    flops: Flops,
    to: float,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
) -> tuple[FlopReport, Floats]:
    """Solve a spot on F flops; return their report, and [F] the exploitabilities reached.

    The report has sums by flop and hand class (`FlopReport`). Exploitabilities are shares of the pot.

    spot    `[game]` keys of the spot (ranges, pot and stacks), without board
    flops   flops on which `has_hands` is True
    to      exploitability to reach, as a share of the pot
    effort  number of processes, time budget, and the file `keep` that keeps finished flops

    Raises `ValueError` for too little memory, and if `effort.keep` belongs to another evaluation. Raises `OSError` if
    that file cannot be read or written, `StoppedError` at a signal, and `RuntimeError` if a worker dies.
    """
    samples = SolvedFlops(spot, flops, to)
    values = run_samples(samples, len(flops.cards), effort)
    classes, half = values[:, :-1].reshape(len(values), CLASSES, -1), samples.pot / 2
    unit, none = float(spot.get("big_blind") or 1), np.zeros((len(values), 0, 3))
    return FlopReport("", samples.actions, 0, (half, half), flops, classes, none, unit), values[:, -1]
