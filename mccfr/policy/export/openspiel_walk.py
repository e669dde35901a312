"""Traverses OpenSpiel's game and ours together, to map its information states to our infosets.

"Ours" is the game of the exported strategy: its betting tree and cards.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from mccfr.cards.card_lists import ListedCards
from mccfr.policy.strategy_profile import Behaviour
from mccfr.trees.betting_lines import line_text
from mccfr.trees.compiled import CHANCE, DECISION

MAX_HISTORIES = 5_000_000
_TOLERANCE = 1e-9


class OpenSpielWalk:
    """Traversal of a whole OpenSpiel game (`pyspiel.Game`), together with the game of a strategy.

    source        the strategy and its game
    action        takes an action label of our tree, and whether the player faces a bet; returns OpenSpiel's action id
    payoff_scale  chips per unit of OpenSpiel's payoffs
    """

    def __init__(self, source: Behaviour, game: Any, action: Callable[[str, bool], int], payoff_scale: float) -> None:
        self._source, self._game = source, game
        self._action, self._payoff_scale = action, payoff_scale
        self._deals = _Deals(source.game.listed_cards()) if source.game.cards.dealt else None

    def policy(self) -> dict[str, dict[str, float]]:
        """Return {information state string: {OpenSpiel action id: probability}} for all decisions.

        If the game has no information state strings, keys are observation strings, or else the states' texts.

        Raises `ValueError` if the games differ in players, actions, chance outcomes, numbers of dealt cards or payoffs.
        Raises it too if there are more than MAX_HISTORIES histories (sequences of actions and deals). Raises it too if
        one string stands for infosets with different strategies.
        """
        found: dict[str, dict[str, float]] = {}
        todo: list[tuple[Any, int, tuple[int, ...]]] = [(self._game.new_initial_state(), 0, ())]
        histories = 0
        while todo:
            state, node, cards = todo.pop()
            histories += 1
            if histories > MAX_HISTORIES:
                raise ValueError(f"{self._game} has more than {MAX_HISTORIES:,} histories, too many for this format")
            if state.is_terminal():
                self._check_payoff(state, node, cards)
            elif state.is_chance_node():
                todo.extend(self._outcomes(state, node, cards))
            else:
                self._decide(state, node, cards, found)
                todo.extend((state.child(action), child, cards) for action, child in self._actions(state, node).items())
        return found

    def _outcomes(self, state: Any, node: int, cards: tuple[int, ...]) -> list[tuple[Any, int, tuple[int, ...]]]:
        tree, outcomes = self._source.game.tree, [outcome for outcome, _ in state.chance_outcomes()]
        if tree.arrays.kind[node] != CHANCE:
            if self._deals is None:
                raise self._differs(node, "chance acts in OpenSpiel's and not in ours")
            return [(state.child(card), node, (*cards, card)) for card in outcomes]
        children = {int(tree.label[child]): child for child in tree.children(node)}
        if set(children) != set(outcomes):
            raise self._differs(node, f"OpenSpiel's chance has the outcomes {outcomes}, ours {list(children)}")
        return [(state.child(outcome), child, cards) for outcome, child in children.items()]

    def _actions(self, state: Any, node: int) -> dict[int, int]:
        """Return {OpenSpiel action id: child node} of a decision of our tree, in the order of its children.

        Raises `ValueError` if the games differ in the player to act or in the actions.
        """
        tree = self._source.game.tree
        player = int(tree.arrays.player[node])
        if tree.arrays.kind[node] != DECISION or player != state.current_player():
            raise self._differs(node, f"player {state.current_player()} acts in OpenSpiel's and {player} in ours")
        labels = [tree.label[child] for child in tree.children(node)]
        ids = [self._action(label, "f" in labels) for label in labels]
        if sorted(ids) != sorted(state.legal_actions()):
            raise self._differs(node, f"OpenSpiel's has the actions {state.legal_actions()}, ours {ids}")
        return dict(zip(ids, tree.children(node), strict=True))

    def _decide(self, state: Any, node: int, cards: tuple[int, ...], found: dict[str, dict[str, float]]) -> None:
        ids = self._actions(state, node)
        bucket = 0 if self._deals is None else self._bucket(self._deals, node, cards)
        shares = self._source.probabilities(node, bucket).tolist()
        here = {str(action): share for action, share in sorted(zip(ids, shares, strict=True))}
        key = _key(self._game, state)
        if found.setdefault(key, here) != here:
            raise ValueError(
                f"OpenSpiel's {self._game} gives one information state string, {key!r}, to infosets that this strategy "
                "plays differently (it forgets what the players saw), so it cannot hold the strategy; goofspiel needs "
                "reveal = 'result' or at most 3 cards: else take the format policy or csv"
            )

    def _bucket(self, deals: "_Deals", node: int, cards: tuple[int, ...]) -> int:
        street, player = divmod(int(self._source.game.tree.arrays.block[node]), 2)
        if deals.cards_dealt(street) != len(cards):
            raise self._differs(node, f"OpenSpiel has dealt {len(cards)} cards")
        return deals.bucket(street, player, cards)

    def _check_payoff(self, state: Any, node: int, cards: tuple[int, ...]) -> None:
        arrays = self._source.game.tree.arrays
        ours = float(arrays.fixed[node])
        if arrays.showdown[node] != 0 and self._deals is not None:
            ours += float(arrays.showdown[node]) * self._deals.result(cards)
        theirs = state.returns()[0] * self._payoff_scale
        if arrays.kind[node] == DECISION or abs(ours - theirs) > _TOLERANCE * max(1.0, abs(ours)):
            raise self._differs(node, f"player 0 gets {theirs} in OpenSpiel's and {ours} in ours")

    def _differs(self, node: int, how: str) -> ValueError:
        line = line_text(self._source.game.tree, node)
        return ValueError(f"OpenSpiel's {self._game} is not this game: after {line!r}, {how}")


def _key(game: Any, state: Any) -> str:
    """Return the string by which OpenSpiel's `TabularPolicy` finds a state's action probabilities.

    It is the information state string if the game has one, else the observation string, else the state's text.
    """
    declared = game.get_type()
    if declared.provides_information_state_string:
        return str(state.information_state_string())
    return str(state.observation_string() if declared.provides_observation_string else state)


class _Deals:
    """Maps cards in OpenSpiel's order of dealing to indices of the hands and boards of our game.

    The order is player 0's hand, player 1's hand, the board.
    """

    def __init__(self, cards: ListedCards) -> None:
        self._cards = cards
        self._hole = int((cards.hand_cards[0] >= 0).sum())
        self._hand = {frozenset(hand[: self._hole]): index for index, hand in enumerate(cards.hand_cards.tolist())}
        self._stops = [board.shape[1] for board in cards.board_cards]
        self._board = [
            {self._grouped(street, board): index for index, board in enumerate(boards.tolist())}
            for street, boards in enumerate(cards.board_cards)
        ]

    def _grouped(self, street: int, board: Any) -> tuple[frozenset[int], ...]:
        """Return a set of card numbers for each street up to `street`: the board cards it deals.

        board  card numbers in order of dealing

        Two boards with equal sets are the same, even if the cards of a street were dealt in another order.
        """
        starts = [0, *self._stops]
        return tuple(frozenset(board[starts[s] : starts[s + 1]]) for s in range(street + 1))

    def cards_dealt(self, street: int) -> int:
        """Return the number of cards dealt up to a street, both hands included."""
        return 2 * self._hole + self._stops[street]

    def _hands(self, cards: tuple[int, ...]) -> tuple[int, int]:
        hole = self._hole
        return self._hand[frozenset(cards[:hole])], self._hand[frozenset(cards[hole : 2 * hole])]

    def bucket(self, street: int, player: int, cards: tuple[int, ...]) -> int:
        """Return the bucket of a player's hand on a street; `cards` are in OpenSpiel's order of dealing."""
        board = self._board[street][self._grouped(street, cards[2 * self._hole :])]
        return int(self._cards.bucket[street][player, board, self._hands(cards)[player]])

    def result(self, cards: tuple[int, ...]) -> float:
        """Return +1 if player 0 wins the showdown of `cards` (in dealing order), -1 if player 1 does, 0: tie."""
        last = len(self._stops) - 1
        strength = self._cards.strength[self._board[last][self._grouped(last, cards[2 * self._hole :])]]
        mine, other = (int(strength[hand]) for hand in self._hands(cards))
        return float(np.sign(mine - other))
