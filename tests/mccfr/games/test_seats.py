"""Betting rules of two to six seats: random play against PokerKit, and single cases.

Readings of the rules in which PokerKit differs, which the random play allows for:

* A player who has acted on the street and faces less than a full raise may not raise. PokerKit counts short all-ins
  from the last full raise on, and not what the player faces; and it takes a street's first all-in bet for a full one.
* The last player with chips, who faces no bet, does not act. PokerKit asks for a check.
* A short big blind is called in full. PokerKit's call is of the blind that was posted.
* Odd chips go one by one to the winners of each pot. PokerKit gives all of them to the first, and counts pots as one
  that differ only in players who win nothing.

Shows:

* Random hands of two to six seats have PokerKit's legal actions and payoffs
  (planted: test_planted_errors_disagree)
"""

import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from pokerkit_table import PokerKitTable, random_action

from abstraction.hand_evaluator import strengths
from mccfr.games import betting
from mccfr.games.betting import BettingRules, after_call, after_fold, following, payoffs, raise_bounds, raised
from mccfr.games.posting import posted

BIG_BLIND = 10


class PokerKitHand(PokerKitTable):
    """One hand at PokerKit's table; seat 0 is the small blind, or with two players the big blind."""

    def __init__(self, stacks, antes, cards):
        flipped = antes[::-1] if len(stacks) == 2 else antes  # PokerKit takes blinds and antes of two in this order
        blinds, trims = (BIG_BLIND // 2, BIG_BLIND), len({*antes}) == 1
        super().__init__(stacks, tuple(flipped), blinds, cards, trims=trims)

    def legal(self, dead):
        """Return if a fold is legal, and the bounds of a raise over the whole hand without dead chips."""
        before = self.put_in_before() - dead
        return self.state.can_fold(), self.bounds(before), before

    def lone_checks(self):
        """Check for the last player with chips, as PokerKit demands; return the number of checks."""
        checks = 0
        while self.state.status and self.state.actor_index is not None:
            assert self.state.checking_or_calling_amount == 0
            assert self.state.min_completion_betting_or_raising_to_amount is None
            self.play("c", 0)
            checks += 1
        return checks


def random_table(rng):
    """Return stacks and antes: deep and short stacks, often of the same size, with and without antes."""
    seats = int(rng.integers(2, 7))
    top = int(rng.choice([15, 40, 150, 1_000]))
    stacks = [int(rng.integers(1, top + 1)) for _ in range(seats)]
    if rng.random() < 0.3:
        stacks = [max(stacks)] * seats
    antes = [0] * seats
    if rng.random() < 0.4:
        antes = [int(rng.integers(1, 6))] * seats
    elif rng.random() < 0.3:
        antes[0 if seats == 2 else 1] = int(rng.integers(1, 12))
    return stacks, antes


def table_rules(stacks, antes):
    """Return the rules of a table, with PokerKit's call of a short blind."""
    seats = len(stacks)
    blinds = [BIG_BLIND, BIG_BLIND // 2] if seats == 2 else [BIG_BLIND // 2, BIG_BLIND] + [0] * (seats - 2)
    first = (1 if seats == 2 else 2 % seats, 0, 0, 0)
    rules = BettingRules((), first, lambda state: (), minimum_bet=BIG_BLIND, board_cards=(0, 3, 1, 1), chip=1)
    return replace(posted(rules, stacks, blinds, antes), least_call=0)


def odd_chips_to_the_first(rules, state, strength):
    """Return the payoffs by PokerKit's reading: the first winner of a pot gets all of its odd chips.

    PokerKit first removes hands that win nothing. Pots of the same players then become one pot.
    """
    dead = rules.dead or (0,) * len(strength)
    won = [-(chips + extra) for chips, extra in zip(state.put_in, dead, strict=True)]
    live = [seat for seat in range(len(strength)) if not state.seats.folded >> seat & 1]
    below, amounts, winners = 0, [], []
    for level in sorted({state.put_in[seat] for seat in live}):
        amounts.append(sum(min(chips, level) - min(chips, below) for chips in state.put_in))
        best = max(strength[seat] for seat in live if state.put_in[seat] >= level)
        winners.append([seat for seat in live if state.put_in[seat] >= level and strength[seat] == best])
        below = level
    amounts[0] += sum(dead)
    alive = {seat for each in winners for seat in each}
    levels = sorted({state.put_in[seat] for seat in live})
    inside = [{seat for seat in alive if state.put_in[seat] >= level} for level in levels]
    for number, (amount, each) in enumerate(zip(amounts, winners, strict=True)):
        if number + 1 < len(amounts) and inside[number + 1] == inside[number]:
            amounts[number + 1] += amount
            continue
        for seat in each:
            won[seat] += amount // len(each) + amount % len(each) * (seat == each[0])
    return won


def play(rng, counts):
    """Play one random hand and compare each step with PokerKit."""
    stacks, antes = random_table(rng)
    seats, cards = len(stacks), rng.permutation(52)
    cards = cards[: 2 * seats + 5]
    rules = table_rules(stacks, antes)
    dead = rules.dead or (0,) * seats
    try:
        state = rules.start()
    except ValueError:
        counts["no decision"] += 1
        hand = PokerKitHand(stacks, antes, cards.tolist())
        hand.lone_checks()
        assert not hand.state.status
        return
    hand, over = PokerKitHand(stacks, antes, cards.tolist()), None
    while over is None:
        seat = state.player
        assert hand.state.actor_index == seat
        bounds = raise_bounds(rules, state)
        folds, theirs, before = hand.legal(dead[seat])
        assert folds == state.facing
        if bounds != theirs:
            short = state.to_call - state.put_in[seat] < state.last_raise
            assert state.seats.acted >> seat & 1 and (bounds, short) in ((None, True), (bounds, False))
            assert None in (bounds, theirs)
            counts["short all-ins"] += 1
            bounds = None
        action = random_action(rng, state.facing, bounds)
        hand.play(action, before)
        if action in ("f", "c"):
            acted = after_fold(state) if action == "f" else after_call(rules, state)
            state = following(rules, acted)
            over = acted if state is None else None
        else:
            state = raised(rules, state, action)
    counts["last player"] += hand.lone_checks()
    assert not hand.state.status
    holes = [np.concatenate([cards[2 * seat : 2 * seat + 2], cards[2 * seats :]]) for seat in range(seats)]
    strength = strengths(np.array(holes)).tolist()
    paid = payoffs(rules, over, strength)
    assert sum(paid) == 0
    if paid != list(hand.state.payoffs):
        counts["odd chips"] += 1
        assert odd_chips_to_the_first(rules, over, strength) == list(hand.state.payoffs)
        pots = len({*over.put_in})
        assert max(abs(ours - theirs) for ours, theirs in zip(paid, hand.state.payoffs, strict=True)) < seats * pots
    counts["hands"] += 1
    counts["seats", seats] += 1
    counts["side pots"] += len({over.put_in[p] for p in range(seats) if not over.seats.folded >> p & 1}) > 2


def compare_hands(hands, seed):
    rng, counts = np.random.default_rng(seed), Counter()
    for _ in range(hands):
        play(rng, counts)
    return counts


def test_random_play_agrees_with_pokerkit():
    counts = compare_hands(1_000, 4)
    assert min(counts["seats", seats] for seats in range(2, 7)) > 100
    assert counts["side pots"] > 200 and counts["short all-ins"] and counts["last player"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_10_000_random_hands_agree_with_pokerkit(seed):
    """Play 10,000 of 100,000 hands, which take half an hour in all."""
    counts = compare_hands(10_000, seed)
    assert counts["hands"] > 9_000 and counts["odd chips"] and counts["short all-ins"], dict(counts)


def one_pot(rules, state, strength):
    """Give the whole pot to the best hand, whatever its player has put in."""
    seats = range(len(strength))
    best = max((seat for seat in seats if not state.seats.folded >> seat & 1), key=lambda seat: strength[seat])
    dead = rules.dead or (0,) * len(strength)
    own = [-(chips + extra) for chips, extra in zip(state.put_in, dead, strict=True)]
    return [chips - sum(own) * (seat == best) for seat, chips in enumerate(own)]


def always_reopened(rules, state):
    return betting.raise_bounds(rules, state._replace(seats=state.seats._replace(barred=0)))


def smallest_raises(rules, state):
    return betting.raise_bounds(rules, state._replace(last_raise=rules.minimum_bet))


@pytest.mark.parametrize(
    ("name", "error"), [("payoffs", one_pot), ("raise_bounds", always_reopened), ("raise_bounds", smallest_raises)]
)
def test_planted_errors_disagree(monkeypatch, name, error):
    monkeypatch.setattr(sys.modules[__name__], name, error)
    with pytest.raises(AssertionError):
        compare_hands(1_000, 1)


# --- Single cases ---


def table(stacks, blinds=(1, 2, 0), antes=(), first=(2, 0)):
    """Return the rules of a table with bets of any size."""
    rules = BettingRules((), first, lambda state: (), minimum_bet=max(blinds), chip=1)
    return posted(rules, stacks, list(blinds), list(antes))


def acting(rules, *actions):
    """Return the state after folds, calls and raises, also if the last action ends the hand."""
    state = rules.start()
    for action in actions:
        if action == "f":
            acted = after_fold(state)
            state = following(rules, acted) or acted
        elif action == "c":
            acted = after_call(rules, state)
            state = following(rules, acted) or acted
        else:
            state = raised(rules, state, action)
    return state


def test_a_short_big_blind_is_called_in_full():
    rules = table([50, 1, 50])
    start = rules.start()
    assert (start.put_in, start.player, start.to_call) == ((1, 1, 0), 2, 2)
    assert raise_bounds(rules, start) == (4, 50)
    assert acting(rules, "c", "c").put_in == (2, 1, 2)
    two = table([1, 50], (2, 1), first=(1, 0))
    with pytest.raises(ValueError, match="no player can bet"):
        two.start()  # the big blind has one chip, which the small blind has matched


def test_a_short_all_in_does_not_reopen_the_betting():
    rules = table([100, 15, 100])
    after = acting(rules, 10, "c", 15)  # a raise by 5, where a full one is by 8
    assert (after.player, raise_bounds(rules, after)) == (2, None)
    assert raise_bounds(rules, acting(rules, 10, "c", 15, "c")) is None, "nor for the one who called"
    fresh = table([100, 100, 15])
    assert raise_bounds(fresh, acting(fresh, 15, 28, 41)) == (54, 100)


def test_short_all_ins_add_up_to_a_full_raise():
    rules = table([100, 14, 18, 100], (1, 2, 0, 0), first=(3, 0))
    after = acting(rules, 10, "c", 14, 18)
    assert after.player == 3 and raise_bounds(rules, after) == (26, 100), "8 more is a full raise for the first"
    assert raise_bounds(rules, acting(rules, 10, "c", 14, 18, "c")) == (26, 100), "who called 10 faces 8 as well"
    late = table([18, 100, 100, 14], (1, 2, 0, 0), first=(2, 0))
    faced = acting(late, 10, 14, 18, "c")
    assert faced.player == 2 and raise_bounds(late, faced) == (26, 100)
    caller = table([100, 18, 100, 14], (1, 2, 0, 0), first=(2, 0))
    assert raise_bounds(caller, acting(caller, 10, 14, "c", 18, "c")) is None, "who called 14 faces 4"


def test_the_big_blinds_ante_is_no_bet():
    rules = table([50, 50, 50], antes=(0, 3, 0))
    start = rules.start()
    assert (start.put_in, start.to_call, rules.dead) == ((1, 2, 0), 2, (0, 3, 0))
    folded = acting(rules, "f", "f")
    assert payoffs(rules, folded, [0, 0, 0]) == [-1, 1, 0]
    split = after_call(rules, acting(rules, "c", "c"))
    assert payoffs(rules, split, [1, 0, 1])[0] == 3, "the odd chip of 9 is the first winner's: 5 of 9"


def test_side_pots_with_ties_and_odd_chips():
    rules = table([5, 20, 50, 50], (1, 2, 0, 0), antes=(1, 1, 1, 1), first=(2, 0))
    over = acting(rules, 50, "c", "c", "c")
    assert over.put_in == (5, 20, 50, 50)
    assert payoffs(rules, over, [3, 3, 1, 2]) == [5, 35, -50, 10], "20 are shared, 45 and 60 are not"
    assert payoffs(rules, over, [2, 2, 2, 2]) == [0, 0, 0, 0]
    three = table([7, 7, 7, 8], (1, 2, 0, 0), first=(2, 0))
    ended = acting(three, 7, "f", "c", "c")
    assert payoffs(three, ended, [4, 4, 4, 9]) == [0, 0, 0, 0]
    odd = acting(three, "c", "c", "c", "c", 7, "f", "c", "c")
    assert odd.put_in == (7, 2, 7, 7) and payoffs(three, odd, [4, 9, 4, 4]) == [1, -2, 1, 0]


def test_rake_comes_from_the_main_pot_first_and_not_from_an_uncalled_bet():
    """All-in for 10, 40 and 100 chips: a main pot of 30, a side pot of 60, and 60 chips that go back."""
    rules = replace(table([10, 40, 100]), rake=0.1, chip=0)
    over = acting(rules, 100, "c", "c")
    pots = [(27, 0b111), (54, 0b110), (60, 0b100)]
    assert [(round(pot.chips, 9), pot.contenders) for pot in betting.pots_of(rules, over)] == pots
    rules = replace(rules, rake_cap=5)
    assert payoffs(rules, over, [3, 2, 1]) == pytest.approx([17, 18, -40])
    assert sum(payoffs(rules, over, [1, 1, 2])) == pytest.approx(-5)


def test_a_hand_that_ends_by_folds_before_the_flop_pays_no_rake():
    rules = replace(table([100, 100, 100]), rake=0.1, rake_cap=5)
    assert payoffs(rules, acting(rules, 6, "f", "f"), [0, 0, 0]) == [-1, -2, 3]
    flop = acting(rules, 6, "c", "c", "c", 20, "f", "f")  # a pot of 18 chips and an uncalled bet
    assert payoffs(replace(rules, chip=0), flop, [0, 0, 0]) == pytest.approx([-6, 10.2, -6])
