"""One hand at PokerKit's table, for tests that compare rules."""

import warnings

from pokerkit import Automation, HandHistory, NoLimitTexasHoldem

from abstraction.cards import card_text

AUTOMATIONS = (
    Automation.ANTE_POSTING,
    Automation.BET_COLLECTION,
    Automation.BLIND_OR_STRADDLE_POSTING,
    Automation.HOLE_CARDS_SHOWING_OR_MUCKING,
    Automation.HAND_KILLING,
    Automation.CHIPS_PUSHING,
    Automation.CHIPS_PULLING,
)


class PokerKitTable:
    """A hand of no-limit hold'em; amounts are chips over the whole hand."""

    def __init__(self, stacks, antes, blinds, cards, *, trims=True):
        """Deal the hole cards: two of `cards` to each player, the rest is the board."""
        self.stacks, self.board = stacks, [card_text(card) for card in cards[2 * len(stacks) :]]
        self.state = NoLimitTexasHoldem.create_state(
            AUTOMATIONS, trims, antes, blinds, blinds[1], tuple(stacks), len(stacks)
        )
        for seat in range(len(stacks)):
            self.state.deal_hole("".join(card_text(card) for card in cards[2 * seat : 2 * seat + 2]))
        self.deal()

    def deal(self):
        """Deal the board cards that are due, street after street if all players are all-in."""
        while self.state.can_burn_card("??"):
            self.state.burn_card("??")
            count = 1 if self.state.board_cards else 3
            self.state.deal_board("".join(self.board[:count]))
            self.board = self.board[count:]

    def put_in_before(self):
        """Return the chips that the player to act had put in before this street, antes included."""
        seat = self.state.actor_index
        return self.stacks[seat] - self.state.stacks[seat] - self.state.bets[seat]

    def bounds(self, before):
        """Return the least and largest raise, or None; `before` is added to the amounts of the street."""
        lowest = self.state.min_completion_betting_or_raising_to_amount
        highest = self.state.max_completion_betting_or_raising_to_amount
        return None if lowest is None else (lowest + before, highest + before)

    def play(self, action, before):
        """Take an action: f, c or the amount of a raise, of which `before` was put in before this street."""
        match action:
            case "f":
                self.state.fold()
            case "c":
                self.state.check_or_call()
            case _:
                self.state.complete_bet_or_raise_to(int(action - before))
        self.deal()


def histories(path):
    """Return each hand of a PHH file as PokerKit reads it, and the state at its end."""
    with path.open("rb") as file, warnings.catch_warnings(action="ignore"):
        return [(hand, [*hand][-1]) for hand in HandHistory.load_all(file)]


def random_action(rng, facing, bounds):
    """Return a random action; folds are rare and raises often small, so that hands are long."""
    chance = rng.random()
    if facing and chance < 0.12:
        return "f"
    if bounds is None or chance < 0.5:
        return "c"
    lowest, highest = bounds
    if chance < 0.75:
        return lowest
    return highest if chance < 0.82 else int(lowest * (highest / lowest) ** (rng.random() ** 2))
