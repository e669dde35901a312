"""Plays one hand of poker, with the rules checked after every action."""

from collections.abc import Sequence
from typing import NamedTuple

from mccfr.cards.card_index import Deal, IndexedCards
from mccfr.games.betting import BettingState, after_fold, after_last, payoffs
from mccfr.games.game import Game
from mccfr.play.player import Betting, Player, Program, State


class PlayedHand(NamedTuple):
    """A finished hand.

    line     the betting, such as "r300c/cr500f": `rN` has N chips put in over the whole hand, `/` separates streets
    states   betting state before each action
    actions  all actions in order: `c`, `f`, `b` or `rN`
    fixed, showdown  two players only. Player 0 wins fixed + showdown · r chips before rake; r is 1, 0 or -1 if
                     player 0 wins, ties or loses the showdown. `showdown` is 0 after a fold
    """

    line: str
    states: tuple[State, ...]
    actions: tuple[str, ...]
    fixed: float = 0.0
    showdown: float = 0.0


def play_hand(
    players: Sequence[Player],
    betting: Betting,
    dealing: IndexedCards,
    deal: Deal,
    number: int,
    names: Sequence[str] = (),
) -> PlayedHand:
    """Play one hand of poker between `players`, and return its betting.

    players           the players in the order of their positions at the table
    betting, dealing  betting rules and cards of the game that all players play
    deal              all hole cards and boards of the hand
    number            number of the hand. From it and its own seed, each player derives its random numbers in the hand
    names             names of the players, for error messages; (): messages have "position" and the index in `players`

    Raises `ValueError` for an illegal action, and `RuntimeError` if a player has recorded other betting than took
    place.
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
        actor = players[state.player]
        who = names[state.player] if names else f"position {state.player}"
        try:
            action = actor.choose()
            after = betting.apply(state, action)  # type: ignore[arg-type]
        except ValueError as error:
            raise ValueError(f"{who}, hand {number}: {error}") from error
        for player in players:
            if player is not actor:
                player.see(action)
        states.append(state)
        actions.append(action)
        line += action + "/" * (not isinstance(after, int) and after.street != street)
        for player in players:
            if player.line != line or player.to_act != (None if isinstance(after, int) else after.player):
                raise RuntimeError(f"after {line!r}, hand {number}: a player takes the hand to be at {player.line!r}")
        state = after
    two = betting.settled(states[-1], actions[-1]) if len(players) == 2 else ()  # type: ignore[arg-type]
    return PlayedHand(line, tuple(states), tuple(actions), *two)


def shown_down(played: PlayedHand) -> tuple[int, ...]:
    """Return the indices of the players at the showdown of `played`; () if all but one have folded."""
    state = played.states[-1]
    if len(state.put_in) == 2:
        return (0, 1) if played.showdown else ()
    assert isinstance(state, BettingState)
    left = (after_fold(state) if played.actions[-1] == "f" else state).left
    return tuple(left) if len(left) > 1 else ()


def won_chips(game: Game, dealing: IndexedCards, deal: Deal, played: PlayedHand) -> tuple[float, ...]:
    """Return each player's net chips won in a hand of poker, after rake; negative for a loss.

    game, dealing  the game and its cards
    deal           all hole cards and boards of the hand
    played         the hand's betting, from `play_hand`
    """
    full, state, shown = deal.boards[-1], played.states[-1], bool(shown_down(played))
    if len(deal.hands) == 2:
        result = float(dealing.showdowns(deal.hands, [full])[0]) if shown else 0.0
        return game.won_chips(played.fixed, played.showdown, result)
    assert isinstance(state, BettingState) and game.real_rules is not None
    strength = dealing.strengths(full)[list(deal.hands)].tolist() if shown else [0] * len(deal.hands)
    return tuple(payoffs(game.real_rules, after_last(game.real_rules, state, played.actions[-1]), strength))
