"""Exploitability of whole hold'em within the bets of its tree: a best response on real cards, from the first street on.

Values below a flop depend on no other, so it is done flop by flop, of which 1,755 are not alike but for suits, and what
a player does before the flop is chosen last, over all of them (`mccfr.evaluation.first_street`; Johanson, Waugh,
Bowling & Zinkevich 2011, "Accelerating best response calculation in large extensive games").  On some flops it is an
estimate with an interval, and a lower bound beside it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from mccfr.evaluation.first_street import Interval, SecondStreetBoards
from mccfr.evaluation.units import Effort, play_units, units_in
from mccfr.policy.profile import Profile

LEAST_FLOPS = 8
"""The fewest of an estimate: two strata of four."""


@dataclass(frozen=True)
class FlopsEvaluation:
    """What a strategy is worth, chips a hand.

    value_chips           to player 0 when both follow it, the game's `offset_chips` included
    best_response_chips   to each player when he responds best, of some flops as `lower_chips` has it; player 0's with
                          `offset_chips`, player 1's less it
    exploitability_chips  mean over players of what a best response gains; of some flops an estimate, whose mean is near
                          it, whatever the choice before the flop flatters being taken off
    ci95_chips            its 95 % interval; None where every flop was played
    lower_chips           of some flops: what a responder won who had not seen them, and its interval
    flops                 how many were played
    """

    value_chips: float
    best_response_chips: tuple[float, float]
    exploitability_chips: float
    ci95_chips: Interval | None
    lower_chips: tuple[float, Interval] | None
    flops: int


def evaluate_flops(
    side: Profile,
    flops: int | None = None,
    seed: int = 0,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
    progress: Callable[[int, int], None] | None = None,
) -> FlopsEvaluation:
    """Exploitability of a strategy of whole hold'em; see the module.

    flops     how many are drawn, from all 22,100; None: each of the 1,755 kinds, and the figure is exact
    progress  called after each flop with those done and their number

    Raises `ValueError` for too few flops; and as `play_units`.
    """
    units, offset = SecondStreetBoards(side), side.game.offset_chips
    if effort.seconds is not None:
        units.draw(LEAST_FLOPS, seed, None)
        flops = units_in(units, effort.seconds, effort.workers, least=LEAST_FLOPS, ready=LEAST_FLOPS)
    if flops is not None and flops < LEAST_FLOPS:
        raise ValueError(f"flops = {flops}: at least {LEAST_FLOPS} are needed, for an interval")
    what = {"method": "exact", "flops": flops, "seed": 0 if flops is None else seed}
    if flops is None:
        count = units.all_flops()
        found = play_units(units, count, effort, what=what, sides=(side,), progress=progress)
        won = units.first.whole(found, units.times)
        best = (won.best[0] + offset, won.best[1] - offset)
        return FlopsEvaluation(won.value + offset, best, sum(won.best) / 2, None, None, count)
    units.draw(flops, seed, None)
    found = play_units(units, flops, effort, what=what, sides=(side,), progress=progress)
    some = units.first.sampled(found, units.strata)
    best = (some.best[0] + offset, some.best[1] - offset)
    return FlopsEvaluation(some.value + offset, best, *some.estimate, some.lower, flops)
