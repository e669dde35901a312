"""Answers the web page's queries about a strategy: the game, and ranges and actions after a line.

A line may have legal bets that the strategy's betting tree lacks. It is then translated: one or more tree lines stand
for it, each with a probability.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.cards import parse_cards
from mccfr.cards.card_index import Board
from mccfr.cards.grid import make_grid
from mccfr.games.betting import BettingState
from mccfr.games.holdem_betting import position_names
from mccfr.games.line_lookup import NOWHERE, LineReading
from mccfr.games.line_text import line_start, typed_line
from mccfr.games.money import money_of
from mccfr.games.translation import Translation
from mccfr.play.line_ranges import FollowedLine, RangesOfLine, WeightedReading, Weights
from mccfr.play.player import State
from mccfr.play.preflop_equity import preflop_won
from mccfr.play.showdown_values import RunOuts, run_outs, win_minus_lose
from mccfr.policy.strategy_profile import Behaviour
from mccfr.trees.betting_lines import chips_after, line_text
from mccfr.trees.street_amounts import street_action, street_line
from mccfr.view.grid_cells import DIGITS, GridCells, rounded
from mccfr.view.hand_classes import hand_kinds
from mccfr.view.labels import action_kind, action_text, pot_share, readings_text, street_text
from mccfr.view.range_text import range_text

MOST_RUN_OUTS = 2_500
"""Maximum number of full boards for equities; a flop has 1,176."""
_UNREACHED = "These strategies never reach this decision. The frequencies are what they would play here."
_KEPT_RUN_OUTS = 4  # boards whose showdowns are cached, 9 MB each after a flop
_LEAST_MET = 1e-12  # share of a range's weight below which a difference of sums is rounding error


class Action(NamedTuple):
    """An action such as r300, and its player's chips in the pot after it, over the whole hand."""

    action: str
    to_chips: float


class SpotDecision(NamedTuple):
    """The decision after a betting line on a board, with the ranges of all P players.

    The game has H hands; L of them are possible on the board.

    node   index of the decision in the strategy's tree; None if the tree lacks the line
    state  betting state after the line's bets
    acted  (betting state before, action, board) of each action of the line
    board  board of the state's street: its cards, or its number in a list of boards
    reach  [P, H] reach weight of each player's hands
    live   [L] int64, ascending: numbers of the hands that share no card with the board and are in an initial range
    """

    node: int | None
    state: State
    acted: list[tuple[Any, str, Board]]
    board: Board
    reach: Weights
    live: npt.NDArray[np.int64]


class Spots:
    """Answers the web page's queries about one strategy after any line; threads may share it.

    In shapes, P is the number of players, H of hands and A of actions.
    """

    def __init__(
        self,
        source: Behaviour,
        title: str,
        facts: list[str] | None = None,
        path: Path | None = None,
        stack: float | None = None,
    ) -> None:
        """Prepare the queries.

        source  the strategy that is shown
        title   name of the strategy
        facts   short texts for the head of the page
        path    path of the policy or run, if its lines may begin new games to solve (spots); otherwise None
        stack   chips of each player at the start of the hand, if the game lacks rules of all legal bets, which state it

        Attributes: `dealing` has the game's hands and boards, `betting` its legal bets, and `money` converts chips to
        texts. `roles` are the names of the positions, and `stacks` their chips at the start (None: unknown).

        Raises `ValueError` for a game that deals cards inside of its tree instead of separately from the betting.
        """
        self.source, self._game, self.title, self.path = source, source.game, title, path
        self._facts = facts or []
        self._ranges = RangesOfLine(source)
        self.betting, self.dealing = self._ranges.betting, self._ranges.dealing
        self.start = line_start(source.game)
        self._rules = self.betting.rules if isinstance(self.betting, Translation) else None
        self.players = source.game.tree.players
        self.roles = tuple(role.capitalize() for role in source.game.roles)
        if self.players > 2:
            self.roles = position_names(self.players)
        self.stacks = None if stack is None else [stack] * self.players
        if self._rules is not None:
            self.stacks = [self._rules.stack_of(player) for player in range(self.players)]
        self.dead_chips = 0.0 if self._rules is None else float(sum(self._rules.dead))
        self._names = [self.dealing.hand_text(hand) for hand in range(self.dealing.hand_count)]
        self._grid = make_grid(self.dealing.hand_cards, self._names)
        self.cells = GridCells(self._grid)
        self.square = len(self._grid.label) != len(self._names)
        self.money = money_of(source.game)
        self._showdowns: Callable[[int, Board], RunOuts] = lru_cache(_KEPT_RUN_OUTS)(self._all_showdowns)

    @property
    def starts_preflop(self) -> bool:
        """True for a strategy of hold'em that begins before the flop."""
        return self.square and not self.dealing.cards_on(0)

    # --- queries ---

    def game(self) -> dict[str, Any]:
        """Return the fields that do not depend on a line: names, streets, the deck and the hand grid.

        streets      name of each street, and the total number of board `cards` on it
        first_board  text of the first street's board if the game has only one, otherwise ""
        deck         texts of the cards that a board may hold
        grid         rows, columns and labels of the hand grid
        square       True if the cells are the 13x13 classes of hold'em; otherwise each hand has a cell
        any_bet      True if lines may have any legal bets, also ones that are not in the tree
        """
        cards, grid = self._game.cards, self._grid
        first = self.dealing.boards_after(-1, None) if self.dealing.first_boards == 1 else []
        return {
            "title": self.title,
            "game": self._game.name,
            "facts": self._facts,
            "unit": "chips" if self.money.unit == 1 else "BB",
            "unit_chips": self.money.unit,
            "roles": list(self.roles),
            "streets": [
                {"name": street_text(self._game, street), "cards": cards.cards_on(street)}
                for street in range(self.dealing.streets)
            ],
            "deck": self.dealing.board_deck(),
            "first_board": self.dealing.board_text(0, first[0]) if len(first) == 1 else "",
            "square": self.square,
            "grid": {"rows": grid.rows, "columns": grid.columns, "label": list(grid.label)},
            "any_bet": self._rules is not None,
        }

    def spot(self, line: str = "", board: str = "") -> dict[str, Any]:
        """Return actions, ranges and frequencies after a line on a board; docs/http.md lists the fields.

        line   actions as users type them, such as "b300c/c"; bets outside the tree only if the game has rules for them
        board  text of all board cards of the line's street, such as "Kc7d2s"

        If `board` has only the cards of an earlier street, `hands`, `classes` and `ranges` are None. `missing_cards` is
        then the number to add. Raises `ValueError` for an invalid line or board; the message lists the allowed ones.
        """
        found = self._follow(line, board)
        state, actions, readings = found.state, self._actions(found), self._readings(found)
        answer = {
            "line": street_line(found.line, self.start),
            "street": state.street,
            "player": state.player,
            "role": self.roles[state.player],
            "left": self.left(state),
            "pot_chips": sum(state.put_in) + self.dead_chips,
            "put_in_chips": list(state.put_in),
            "behind_chips": self.behind_chips(state.put_in),
            "path": [self.step(state, action, line) for line, state, action in found.acted],
            "readings": readings,
            "note": readings_text(readings),
            "actions": [self._labelled(found, action) for action in actions],
        }
        if found.boards is None:
            lacking = self._ranges.lacking(state.street, board)
            return {**answer, "board": board, "missing_cards": lacking, "hands": None, "classes": None, "ranges": None}
        text = self.dealing.board_text(state.street, found.boards[-1])
        answer |= {"board": text, "missing_cards": 0, **self._hands(found, actions)}
        if not readings and answer["frequencies"] is None:
            answer["note"] = _UNREACHED
        return answer

    def left(self, state: State) -> list[int]:
        """Return the indices of the positions that have not folded in a betting state, ascending."""
        return list(state.left) if isinstance(state, BettingState) else list(range(self.players))

    def behind_chips(self, put_in: Sequence[float]) -> list[float] | None:
        """Return each player's chips less those in `put_in`; None if stacks are unknown."""
        return self.stacks and [stack - chips for stack, chips in zip(self.stacks, put_in, strict=True)]

    def equity(self, line: str = "", board: str = "") -> dict[str, Any]:
        """Return the equity of each hand against the opponent's range, if no further bets are made.

        Equity is the mean share of the pot, 0 to 1, over boards to come. `equity` [P][h] has that of each player's h
        possible hands, ascending by hand index; None if no opposing hand is possible. `mean` [P] has the equity of each
        range. Entries of players who have folded are None. `equity` and `mean` are None if more than two players are
        left, or board cards are missing. Preflop a hand's equity against another is that of their classes, such as AKs.
        Both are None preflop in games that end before the river.

        Raises `ValueError` for an invalid line or board.
        """
        found = self._follow(line, board)
        left, no_river = self.left(found.state), self.dealing.cards_on(self.dealing.streets - 1) != 5
        if found.boards is None or len(left) > 2 or (self._is_preflop(found) and no_river):
            return {"equity": None, "mean": None}
        live, weight = self._live(found), self._ranges.reach(found)
        each = list[list[float | None] | None]([None] * self.players)
        mean = list[float | None]([None] * self.players)
        for player, other in (left, left[::-1]):
            opponent_weight, own = self.dealing.disjoint_weight(weight[other]), weight[player]
            known = opponent_weight > _LEAST_MET * max(weight[other].sum(), 1e-300)
            share = np.where(known, self._won(found, weight[other]) / np.where(known, opponent_weight, 1), np.nan)
            total = float((own * opponent_weight)[known].sum())
            if total > 0:
                mean[player] = round(float((own * opponent_weight * share)[known].sum()) / total, DIGITS)
            each[player] = [None if np.isnan(one) else round(one, DIGITS) for one in share[live].tolist()]
        return {"equity": each, "mean": mean}

    def ranges(self, line: str = "", board: str = "", notation: str = "mccfr") -> list[dict[str, Any]]:
        """Return for each player `role` (the position), the range's `text`, and weighted number of `combos`.

        `notation` is mccfr, pio, gto+, gtowizard or equilab. Raises `ValueError` for another one, or if it cannot write
        the weights. Also for an invalid line or board, and for missing board cards.
        """
        found = self._follow(line, board)
        if found.boards is None:
            raise ValueError("cards of the board are missing: choose them first")
        return self._texts(found, notation)

    def action_ranges(self, line: str) -> list[tuple[str, str]]:
        """Return (action name, range text of the hands that take it) for each action except a fold.

        A hand's weight in the text is its reach weight times the probability of the action. Raises `ValueError` for an
        invalid line, or one that ends on a street with board cards.
        """
        found = self._follow(line, "")
        if found.boards is None:
            raise ValueError("cards of the board are missing: choose them first")
        actions, reach = self._actions(found), self._ranges.reach(found)[found.state.player]
        played, every = self._strategy(found, actions)[0], np.ones(len(reach), bool)
        return [
            (
                self._labelled(found, one)["name"],
                range_text(self._grid, self._names, reach * played[:, column], every, 1.0),
            )
            for column, one in enumerate(actions)
            if one.action != "f"
        ]

    def _follow(self, line: str, board: str) -> FollowedLine:
        """Return betting state, boards and ranges after a typed line; `ValueError` for invalid texts."""
        return self._ranges.follow(typed_line(self._game, line.strip()), board)

    def _texts(self, found: FollowedLine, notation: str) -> list[dict[str, Any]]:
        reach, possible = self._ranges.reach(found), np.zeros(self.dealing.hand_count, bool)
        possible[self._live(found)] = True
        return [
            {
                "role": self.roles[one],
                "combos": round(float(reach[one].sum()), 2),
                "text": range_text(self._grid, self._names, reach[one], possible, notation=notation),
            }
            for one in range(self.players)
        ]

    def decision(self, line: str, board: str) -> SpotDecision:
        """Return the decision after a line; `ValueError` for an invalid line or board, or missing cards."""
        found = self._follow(line, board)
        if found.boards is None:
            raise ValueError("cards of the board are missing: choose them first")
        acted = [(state, action, found.boards[state.street]) for _, state, action in found.acted]
        node, reach = self._single(found), self._ranges.reach(found)
        return SpotDecision(node, found.state, acted, found.boards[-1], reach, self._live(found))

    def strategy(self, line: str, board: str, actions: Sequence[str], played: Weights) -> dict[str, Any]:
        """Describe action probabilities after `line` on `board` for the page, such as those of a re-solve.

        actions  legal actions, with the chips put in since the start of the hand as amounts, such as r300
        played   [H, A] probabilities of these actions with each hand

        Returns `actions`, and probabilities: `frequencies` over the range, by `hands`, and by grid cell in `classes`.
        """
        found = self._follow(line, board)
        answer = [Action(action, self.to_chips(found.state, action)) for action in actions]
        return {"actions": [self._labelled(found, one) for one in answer], **self._played(found, played)}

    def offered(self, line: str) -> list[dict[str, Any]]:
        """Describe the strategy's actions after a line: {"action", "kind", "name", "to_chips", ...} of each.

        In games with rules of all legal bets a call is added if absent. Raises `ValueError` for an invalid line.
        """
        line = typed_line(self._game, line.strip())
        state, readings = self.betting.read(line)
        if isinstance(state, int):
            raise ValueError(f"line {line!r}: the hand is over here, so no player acts; give a line to a decision")
        places = {(one.node, one.closed): WeightedReading(one.probability, np.empty(0)) for one in readings}
        found = FollowedLine(line, state, None, places, [])
        actions = self._actions(found)
        if isinstance(state, BettingState) and all(one.action != "c" for one in actions):
            actions.insert(1, Action("c", self.to_chips(state, "c")))
        return [self._labelled(found, one) for one in actions]

    def step(self, state: Any, action: str, line: str) -> dict[str, Any]:
        """Describe an action for the page: `line` before it, `street`, `player`, `action`, `kind` and `name`.

        state, line  betting state and line before the action
        action       f, c, or a raise with the chips put in since the start of the hand, such as r300

        In the answer `kind` is "fold", "call" or "raise". `name` is a text such as "Raise to 9 BB". `line` and `action`
        have the chips put in since the start of the street, such as b200.
        """
        answer = action_text(state, action, self.to_chips(state, action), self.money, self._rules)
        return {
            "line": street_line(line, self.start),
            "street": state.street,
            "player": state.player,
            "action": street_action(line, action, self.start),
            "kind": action_kind(action),
            "name": answer,
        }

    def _won(self, followed: "FollowedLine", other: Weights) -> Weights:
        """Return [H] for each hand the sum of opposing weight times share of the pot won.

        other  [H] weights of the opponent's hands; those that share a card with the hand are left out

        A win counts 1, a tie 0.5: a mean over at most `MOST_RUN_OUTS` boards, or preflop that of the two classes.
        """
        assert followed.boards is not None
        if self._is_preflop(followed):
            return preflop_won(other)
        won = win_minus_lose(self.dealing, self._showdowns(followed.state.street, followed.boards[-1]), other)
        return np.asarray(0.5 * (self.dealing.disjoint_weight(other) + won))

    def _is_preflop(self, followed: FollowedLine) -> bool:
        """True if the line ends on the first street of hold'em, before any board cards."""
        return self.dealing.boards is None and not self.dealing.cards_on(followed.state.street)

    # --- actions and probabilities ---

    def _single(self, followed: FollowedLine) -> int | None:
        """Return the tree node of a line; None if the line is not in the tree."""
        (node, closed), *more = followed.places
        if more or closed != NOWHERE or line_text(self._game.tree, max(node, 0)) != followed.line:
            return None
        return node

    def _actions(self, followed: FollowedLine) -> list[Action]:
        """Return the strategy's actions after a line; outside of the tree their amounts are made legal."""
        node, state = self._single(followed), followed.state
        tree = self._game.tree
        if node is not None:
            labels = [tree.label[child] for child in tree.children(node)]
            return [Action(*pair) for pair in zip(labels, chips_after(tree, node), strict=True)]
        actions = {action for place in followed.places for action in self._real_actions(place, state)}
        answer = [Action(action, self.to_chips(state, action)) for action in actions]
        return sorted(answer, key=lambda one: (one.action != "f", one.action != "c", one.to_chips))

    def _real_actions(self, place: tuple[int, int], state: Any) -> list[str]:
        return self.betting.real_actions(self.betting.at(LineReading(place[0], 1.0, place[1]), state), state)

    def to_chips(self, state: Any, action: str) -> float:
        """Return the chips that the player to act in `state` has put in over the whole hand after an action."""
        if action == "f":
            return float(state.put_in[state.player])
        if action == "c":
            return float(min(state.to_call, self.stacks[state.player] if self.stacks else inf))
        if isinstance(state, BettingState):
            return float(action[1:])
        tree = self._game.tree
        labels = [tree.label[child] for child in tree.children(state.node)]
        return chips_after(tree, state.node)[labels.index(action)]

    def _strategy(self, followed: FollowedLine, actions: list[Action]) -> tuple[Weights, npt.NDArray[np.bool_]]:
        """Return the probabilities [H, A] of actions, and [H] bool: True if training has visited the hand.

        If several tree lines stand for a line, probabilities are weighted means over these; a visit of one counts.
        """
        assert followed.boards is not None
        state: Any = followed.state
        number = {one.action: place for place, one in enumerate(actions)}
        buckets = self.dealing.bucket_row(state.street, state.player, followed.boards[-1])
        played = np.zeros((self.dealing.hand_count, len(actions)))
        trained = np.zeros(self.dealing.hand_count, bool)
        single = self._single(followed)
        for (node, closed), place in followed.places.items():
            reading = self.betting.at(LineReading(node, 1.0, closed), state)
            if not self.betting.decides(reading):
                played[buckets >= 0, number[self._real_actions((node, closed), state)[0]]] += place.probability
                continue
            rows = self.source.rows(reading.node, buckets)[0]
            real = [one.action for one in actions] if single is not None else self._real_actions((node, closed), state)
            for column, action in enumerate(real):
                played[:, number[action]] += place.probability * rows[:, column]
            known, back = np.unique(buckets, return_inverse=True)
            weighed = [bucket >= 0 and self.source.weight(reading.node, bucket) > 0 for bucket in known.tolist()]
            trained |= np.array(weighed)[back]
        return played, trained

    def _live(self, followed: FollowedLine) -> npt.NDArray[np.int64]:
        """Return [L] the indices of the hands that are in any initial range and share no card with the board."""
        assert followed.boards is not None
        left = self.dealing.live(followed.state.street, followed.boards[-1])
        return np.flatnonzero(left & (self.dealing.reach > 0).any(axis=0))

    def _all_showdowns(self, street: int, board: Board) -> RunOuts:
        return run_outs(self.dealing, street, board, (), MOST_RUN_OUTS, np.random.default_rng(0))

    # --- answers ---

    def _labelled(self, followed: FollowedLine, action: Action) -> dict[str, Any]:
        state: Any = followed.state
        after = self.betting.apply(state, action.action)
        ends = isinstance(after, int)
        street = "" if isinstance(after, int) or after.street == state.street else "/"
        kind = action_kind(action.action)
        return {
            "action": street_action(followed.line, action.action, self.start),
            "kind": kind,
            "name": action_text(state, action.action, action.to_chips, self.money, self._rules),
            "to_chips": action.to_chips,
            "pot_share": round(pot_share(state, action.to_chips), 4) if kind == "raise" else None,
            "line": None if ends else street_line(followed.line + action.action + street, self.start),
            "ends": ends,
        }

    def _readings(self, followed: FollowedLine) -> list[dict[str, Any]]:
        """Return the tree lines that stand for a line outside of the tree, most likely first; else [].

        Each has its `line` and `probability`. `line` is None if the tree has no decision for the player there. With two
        players `after_call` is then the tree line to which a call leads.
        """
        if self._single(followed) is not None:
            return []
        tree = self._game.tree
        readings: list[dict[str, Any]] = [
            {
                "line": None if node == NOWHERE else street_line(line_text(tree, node), self.start),
                "after_call": None if closed == NOWHERE else street_line(line_text(tree, closed), self.start),
                "probability": place.probability,
            }
            for (node, closed), place in followed.places.items()
        ]
        return sorted(readings, key=lambda one: -one["probability"])

    def _hands(self, followed: FollowedLine, actions: list[Action]) -> dict[str, Any]:
        """Return the parts of the answer of `spot` that need a board: frequencies, hands, classes, ranges."""
        live, reach, share = self._live(followed), self._ranges.reach(followed), self._shares(followed)
        played, trained = self._strategy(followed, actions)
        answer = self._played(followed, played)
        answer["hands"] |= {
            "names": [self._names[hand] for hand in live.tolist()],
            "cells": self._grid.cell[live].tolist(),
            **self._kinds(followed, live),
            "trained": trained[live].tolist(),
            "reach": rounded(reach[:, live]),
            "shares": rounded(share[:, live]),
        }
        answer["classes"] |= self.cells.weights(reach[:, live], share[:, live], live)
        return {**answer, "ranges": self._texts(followed, "mccfr")}

    def _kinds(self, followed: FollowedLine, live: npt.NDArray[np.int64]) -> dict[str, list[str]]:
        """Return {"made": [L], "draws": [L]} texts on hands `live`; {} preflop or without 13x13 grid."""
        board = followed.boards[-1] if followed.boards else ()
        text = self.dealing.board_text(followed.state.street, board)
        if not self.square or not text:
            return {}
        made, draws = hand_kinds(parse_cards(text))
        return {"made": [made[hand] for hand in live], "draws": [draws[hand] for hand in live]}

    def _shares(self, followed: FollowedLine) -> Weights:
        """Return [P, H] the probability that each player holds each hand, given line and board.

        It is 0 if the strategies never play the line. Cards in the ranges of all other players, folded ones included,
        are less likely. With three and more players it is ignored that two of the others cannot hold the same card.
        """
        reach = self._ranges.reach(followed)
        met = [np.maximum(self.dealing.disjoint_weight(one), 0) for one in reach]
        joint = np.stack(
            [np.prod([own, *met[:player], *met[player + 1 :]], axis=0) for player, own in enumerate(reach)]
        )
        total = joint.sum(axis=1, keepdims=True)
        return np.where(total > 0, joint / np.where(total > 0, total, 1), 0)

    def _played(self, followed: FollowedLine, played: Weights) -> dict[str, Any]:
        """Return probabilities `played` [H, A] as JSON: of the range, hands and grid cells."""
        live, own = self._live(followed), self._shares(followed)[followed.state.player]
        return {
            "frequencies": rounded(own @ played) if own.any() else None,
            "hands": {"probabilities": rounded(played[live])},
            "classes": {"probabilities": self.cells.means(played[live], own[live], live)},
        }
