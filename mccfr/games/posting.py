"""Computes chips put in, stacks and dead chips after the players have posted antes and blinds.

Dead chips (`BettingRules.dead`) are antes that count neither as bets nor as part of the stacks.
"""

from collections.abc import Sequence
from dataclasses import replace

from mccfr.games.betting import BettingRules


def posted(
    rules: BettingRules, stacks: Sequence[float], blinds: Sequence[float], antes: Sequence[float]
) -> BettingRules:
    """Return `rules` with the chips put in after all players have posted antes, then blinds.

    A player with too few chips posts all of them.

    stacks  chips of each seat before posting
    blinds  chips of each seat, or empty; without blinds, a larger ante is a bet that others must call
    antes   chips of each seat, or empty; equal antes are no bets. With blinds, unequal antes (such as one player's ante
            for all) become dead chips

    If the big blind's player has fewer chips than the blind, a call before the first raise is still of the whole blind.
    If the second largest stack is less than the blind, the call is of that stack.
    """
    antes, seats = antes or [0.0] * len(stacks), range(len(stacks))
    dead = [min(antes[seat], stacks[seat]) for seat in seats] if blinds and len({*antes}) > 1 else []
    left = [stacks[seat] - dead[seat] for seat in seats] if dead else list(stacks)
    bets = [(0 if dead else antes[seat]) + (blinds[seat] if blinds else 0) for seat in seats]
    put_in = tuple(min(bets[seat], left[seat]) for seat in seats)
    least = min(max(bets), sorted(left)[-2])
    return replace(
        rules,
        put_in=put_in,
        put_in_before=0 if dead else min(antes),  # for the sizes of a menu: an ante is no bet
        stack=max(left),
        stacks=tuple(left) if len({*left}) > 1 else (),
        dead=tuple(dead),
        least_call=least if least > max(put_in) else 0,
    )


def with_stacks(rules: BettingRules, stacks: Sequence[float]) -> BettingRules:
    """Return the rules for one hand of a game with other stacks.

    rules   rules of the game, in which the players' stacks cover their antes and blinds
    stacks  chips of each seat before posting; two players can bet only the smaller stack

    Raises `ValueError` unless each seat has a stack and two stacks exceed the largest ante plus the largest blind.
    """
    seats = len(rules.put_in)
    antes = list(rules.dead) or [rules.put_in_before] * seats
    blinds = [chips - rules.put_in_before for chips in rules.put_in]
    if len(stacks) != seats or sorted(stacks)[-2] <= max(antes) + max(blinds):
        number = "two" if seats == 2 else seats
        raise ValueError(f"stacks = {stacks}: {number} amounts above the big blind are needed, in the policy's chips")
    return posted(rules, [min(stacks)] * 2 if seats == 2 else stacks, blinds, antes)
