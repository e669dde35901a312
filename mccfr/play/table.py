"""Plays one hand between two players, with the rules checked after every action."""

from collections.abc import Sequence
from typing import NamedTuple

from mccfr.cards.card_index import Deal, IndexedCards
from mccfr.play.player import Betting, Player, Program, State


class PlayedHand(NamedTuple):
    """A finished hand.

    line     the betting, as in `mccfr.trees.betting_lines`
    states   of the betting before each action
    actions  in order
    fixed, showdown  player 0's chips without the showdown; chips multiplied by the showdown result
    """

    line: str
    states: tuple[State, ...]
    actions: tuple[str, ...]
    fixed: float
    showdown: float


def play_hand(
    players: Sequence[Player],
    betting: Betting,
    dealing: IndexedCards,
    deal: Deal,
    number: int,
    names: Sequence[str] = (),
) -> PlayedHand:
    """Play a hand between two players, given by position.

    betting, dealing  of the real game, which is also the players'
    number            of the hand, as in `Player.deal`
    names             of the players, for errors

    Raises `ValueError` for an illegal action, and `RuntimeError` if a player's record of the hand differs.
    """
    for position, player in enumerate(players):
        hidden = isinstance(player, Program) and player.blind
        player.deal(position, "" if hidden else dealing.hand_text(deal.hands[position]), number)
    state: State | int
    state, _ = betting.start()
    street = -1
    states, actions, line = list[State](), list[str](), ""
    while not isinstance(state, int):
        if state.street != street:
            street = state.street
            text = dealing.board_text(street, deal.boards[street])
            for player in players:
                player.board(text)
        actor, other = players[state.player], players[1 - state.player]
        who = names[state.player] if names else f"position {state.player}"
        try:
            action = actor.choose()
            after = betting.apply(state, action)  # type: ignore[arg-type]
        except ValueError as error:
            raise ValueError(f"{who}, hand {number}: {error}") from error
        other.see(action)
        states.append(state)
        actions.append(action)
        line += action + "/" * (not isinstance(after, int) and after.street != street)
        for player in players:
            if player.line != line or player.to_act != (None if isinstance(after, int) else after.player):
                raise RuntimeError(f"after {line!r}, hand {number}: a player takes the hand to be at {player.line!r}")
        state = after
    fixed, showdown = betting.settled(states[-1], actions[-1])  # type: ignore[arg-type]
    return PlayedHand(line, tuple(states), tuple(actions), fixed, showdown)
