"""A human player at the terminal: prints events in words and prompts for actions.

Amounts are in big blinds if the game has one, otherwise in chips. Bets are totals on the street. So a raise to 6
before the flop includes the blind, and a bet of 6 on the turn adds 6.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from math import inf
from random import Random
from typing import NamedTuple

from mccfr.cards.card_index import Deal, IndexedCards
from mccfr.games.betting import BettingState, amount_text, raise_bounds
from mccfr.games.game import Game
from mccfr.games.holdem_betting import position_names
from mccfr.games.money import money_of
from mccfr.games.translation import Translation, real_betting
from mccfr.play.player import Betting, PlayerSpec, Program, State
from mccfr.play.table import PlayedHand, play_hand, shown_down, won_chips

HELP = """\
  f       fold                     c      check or call
  r 6     bet or raise to 6 {unit} on this street
  r 50%   half the pot, after calling; r pot: all of it
  a       all-in                   q      stop; this hand does not count"""
LISTED_HELP = """\
  f       fold                     c      check or call
  r       bet or raise             q      stop; this hand does not count"""
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,6})?")
_CALLS, _CHECKS, _FOLDS = ("c", "call"), ("k", "x", "check"), ("f", "fold")
_ALL_IN = ("a", "all-in", "allin", "all in")
Ask = Callable[[str], str]
Tell = Callable[[str], None]


class LeaveError(Exception):
    """Raised when the human player quits."""


def role(game: Game, position: int) -> str:
    """Return the role of player `position` in words, such as "the button and small blind"."""
    if game.tree.players > 2:
        return f"{position_names(game.tree.players)[position]} ({game.roles[position]})"
    if game.big_blind_chips:
        return "the button and small blind" if position else "the big blind"
    return "second to act" if position else "first to act"


def opponent(game: Game, position: int) -> str:
    """Return an opponent's name in sentences: "The policy" in games of two, else a seat such as "BTN".

    position  the opponent's player number
    """
    return "The policy" if game.tree.players == 2 else position_names(game.tree.players)[position]


class Person(Program):
    """A player whose actions a human types at the terminal, which shows board and opponents' actions."""

    def __init__(self, betting: Betting, game: Game, ask: Ask, tell: Tell) -> None:
        """Take the betting rules, the game and the terminal's functions.

        betting  rules of the game with all legal amounts
        ask      returns the answer to a prompt; raises `EOFError` at the end of input
        tell     prints a line
        """
        super().__init__(betting)
        self._ask, self._tell, self._game, self._money = ask, tell, game, money_of(game)

    def deal(self, position: int, hand: str, number: int | None = None) -> None:
        """Begin a hand; print the player's role, such as the big blind, and its cards.

        position  player number in this hand
        hand      hole cards, such as "AsKd"
        number    number of the hand; None: one more than the last
        """
        super().deal(position, hand, number)
        self._tell(f"\nHand {self._hands + 1}: you are {role(self._game, position)}. Your cards: {spaced(hand)}")

    def board(self, cards: str) -> None:
        """Set the board and print it."""
        before, state = self.cards, self.state
        super().board(cards)
        if cards != before and not isinstance(state, int):
            self._tell(f"  Board: {spaced(cards)}, pot {self._money.text(sum(state.put_in))}")

    def see(self, action: str) -> None:
        """Print and record the action of another player."""
        assert self.to_act is not None
        self._tell(f"  {opponent(self._game, self.to_act)} {self._done(action)}")
        super().see(action)

    def act(self, random: Random) -> str:
        """Ask until the answer is a legal action; return it. `LeaveError` if the human quits."""
        del random
        while True:
            try:
                text = self._ask(f"  You: {self._choices()} > ").strip().lower()
            except EOFError:
                raise LeaveError from None
            if text in ("q", "quit", "exit"):
                raise LeaveError
            if text in ("?", "h", "help"):
                unit = "chips" if self._money.unit == 1 else "big blinds"
                self._tell(HELP.format(unit=unit) if self._rules is not None else LISTED_HELP)
                continue
            action = self._read(text)
            problem = f"{text[:40]!r} is none of these: ? helps" if action is None else self._problem(action)
            if text in _CHECKS and self.may_fold:
                problem = "there is a bet: call with c or fold with f"
            if action is not None and not problem:
                return action
            self._tell(f"  {problem}")

    def _choices(self) -> str:
        """Return the legal actions as text for the prompt, such as "[f]old, [c]all 3 BB, ? helps"."""
        state = self.state
        assert not isinstance(state, int)
        choices = ["[f]old"] * self.may_fold
        if self.may_call:
            choices.append(f"[c]all {self._call_text(state)}" if self.may_fold else "[c]heck")
        bets = self.raises()
        if bets and isinstance(state, BettingState):
            low, high = (self._money.text(float(each[1:]) - state.put_in_before) for each in bets)
            verb = "[r]aise to" if state.bets or state.street == 0 else "[b]et"
            choices.append(f"{verb} {low} .. {high}" if low != high else f"[a]ll-in for {high}")
        elif bets:
            choices.append("[r]aise" if self.may_fold else "bet with [r]")
        return ", ".join([*choices, "? helps"])

    def _call_text(self, state: State) -> str:
        """Return as text the amount that a call adds, such as "3 BB"; never more than the stack left."""
        stack = inf if self._rules is None else self._rules.stack_of(state.player)
        return self._money.text(min(state.to_call, stack) - state.put_in[state.player])

    def _problem(self, action: str) -> str:
        """Return why an action is illegal; "" if it is legal."""
        state = self.state
        assert not isinstance(state, int)
        if action == "f" and not self.may_fold:
            return "there is nothing to fold to: check with c"
        if action == "c" and not self.may_call:
            return "you cannot check or call here"
        if action not in ("c", "f") and isinstance(state, BettingState) and self._rules is not None:
            bounds = raise_bounds(self._rules, state)
            if bounds is None:
                return "you cannot raise: the other players are all-in, or the last bet was no full raise"
            if not bounds[0] <= float(action[1:]) <= bounds[1]:
                low, high = (self._money.text(each - state.put_in_before) for each in bounds)
                return f"a raise is to {low} at least and {high} at most"
        return ""

    def _read(self, text: str) -> str | None:
        """Convert the human's answer, such as "raise 6", to an action, such as `r600`; None if it is invalid."""
        if text in _FOLDS:
            return "f"
        if text in (*_CALLS, *_CHECKS):
            return "c"
        if text in _ALL_IN:
            return (self.raises((1.0,)) or ["c"])[0]
        amount = re.sub(r"^(raise|bet|r|b)\s*(to\s*)?", "", text)
        if amount == text:
            return None
        state = self.state
        if not isinstance(state, BettingState):
            listed = self.raises()
            return listed[0] if listed and (amount == "" or text in listed) else None
        if amount in ("pot", "p"):
            amount = "100%"
        if amount.endswith("%") and _NUMBER.fullmatch(amount[:-1]):
            assert isinstance(self.betting, Translation)
            target = state.to_call + float(amount[:-1]) / 100 * self.betting.pot_after_call(state)
        elif _NUMBER.fullmatch(amount):
            target = state.put_in_before + float(amount) * self._money.unit
        else:
            return None
        whole = all(float(each[1:]).is_integer() for each in self.raises())
        return f"r{amount_text(float(round(target)) if whole else target)}"

    def _done(self, action: str) -> str:
        """Return an action of another player in words, such as "raises to 6 BB"."""
        state = self.state
        assert not isinstance(state, int)
        if action == "f":
            return "folds"
        if action == "c":
            return f"calls {self._call_text(state)}" if state.facing else "checks"
        if not isinstance(state, BettingState) or self._rules is None:
            return "raises" if state.facing else "bets"
        target = float(action[1:])
        verb = "raises to" if state.bets or state.street == 0 else "bets"
        all_in = ", all-in" * (target >= self._rules.stack_of(state.player))
        return f"{verb} {self._money.text(target - state.put_in_before)}{all_in}"


class PersonHand(NamedTuple):
    """A finished hand of a human against policies: the human's seat and winnings, and all cards.

    position  player number of the human
    won       chips that the human won, after rake; below 0 for a loss
    shared    True if a game has two players and they tie at the showdown; False with more players
    shown     numbers of the players whose cards were shown
    line      all actions, such as "r300c/cr500f": `rN` has N chips put in over the whole hand
    hands     hole cards by player number
    board     all dealt board cards
    """

    position: int
    won: float
    shared: bool
    shown: Sequence[int]
    line: str
    hands: tuple[str, ...]
    board: str


def play_person(spec: PlayerSpec, game: Game, hands: int, seed: int, ask: Ask, tell: Tell) -> Iterator[PersonHand]:
    """Yield hands of a human against a policy in all other seats, until the human quits.

    The button moves after each hand.

    spec   creates the policy's players
    hands  largest number of hands
    seed   of the deals and the policy's players
    ask    returns the human's answer to a prompt; raises `EOFError` at the end of input
    tell   prints a line

    Raises `ValueError` for a game without cards, or with cards as chance nodes of its tree.
    """
    betting, dealing = real_betting(game), game.table_cards()
    seats = game.tree.players
    others = [spec.player(betting, seed=seed + number) for number in range(seats - 1)]
    chairs = [Person(betting, game, ask, tell), *others]
    for number in range(hands):
        deal = dealing.deal(seed, number)
        players = [chairs[(position + number) % seats] for position in range(seats)]
        try:
            played = play_hand(players, betting, dealing, deal, number)
        except LeaveError:
            return
        finished = _result_of(game, dealing, deal, played, -number % seats)
        tell(_result_text(game, finished))
        yield finished


def _result_of(game: Game, dealing: IndexedCards, deal: Deal, played: PlayedHand, position: int) -> PersonHand:
    """Return the result of a finished hand for the human, who is player number `position`."""
    shown, won = shown_down(played), won_chips(game, dealing, deal, played)
    street = dealing.streets - 1 if shown else played.states[-1].street
    shared = bool(shown) and len(won) == 2 and won[0] == won[1]
    hands = tuple(dealing.hand_text(hand) for hand in deal.hands)
    board = dealing.board_text(street, deal.boards[street])
    return PersonHand(position, won[position], shared, shown, played.line, hands, board)


def _result_text(game: Game, hand: PersonHand) -> str:
    """Return the result of a hand in words: the opponents' shown cards and the human's winnings."""
    money, board = money_of(game), f" on {spaced(hand.board)}" if hand.board else ""
    others = [position for position in hand.shown if position != hand.position]
    shown = "".join(f"  {opponent(game, each)} shows {spaced(hand.hands[each])}{board}.\n" for each in others)
    if hand.shared:
        rake = f" Your half of the rake: {money.text(-hand.won)}." if hand.won else ""
        return f"{shown}  You share the pot.{rake}"
    if not hand.won:
        return f"{shown}  You neither win nor lose chips."
    return f"{shown}  You {'win' if hand.won > 0 else 'lose'} {money.text(abs(hand.won))}."


def history(game: Game, number: int, hand: PersonHand) -> str:
    """Return a finished hand as one line of text: role, all cards, betting, and human's winnings.

    number  number of the hand in the session
    """
    own = spaced(hand.hands[hand.position])
    others = ", ".join(
        f"{opponent(game, position)} {spaced(cards)}" if len(hand.hands) > 2 else spaced(cards)
        for position, cards in enumerate(hand.hands)
        if position != hand.position
    )
    board = f" | {spaced(hand.board)}" if hand.board else ""
    won = ("+" if hand.won > 0 else "-" if hand.won < 0 else "") + money_of(game).text(abs(hand.won))
    return f"{number:4}. {role(game, hand.position)}: {own} against {others}{board} | {hand.line} | {won}"


def spaced(cards: str) -> str:
    """Return cards such as "AsKd" separated by blanks, "As Kd"; text without cards unchanged."""
    pairs = re.findall("[2-9TJQKA][cdhs]", cards)
    return " ".join(pairs) if "".join(pairs) == cards else cards
