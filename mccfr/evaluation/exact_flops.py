"""Exploitability of full-deck hold'em inside its betting tree, by best responses on real cards.

Values below different flops are independent, so each of the 1,755 flops that differ by more than suits is walked
alone. The first street's actions are chosen last, over all flops together (`mccfr.evaluation.preflop_best_response`;
Johanson, Waugh, Bowling & Zinkevich 2011, "Accelerating best response calculation in large extensive games"). On a
sample of flops the result is an estimate with an interval, and a lower bound.
"""

from collections.abc import Callable
from dataclasses import dataclass

from mccfr.evaluation.preflop_best_response import Interval, SecondStreetBoards
from mccfr.evaluation.samples import Effort, play_units, units_in
from mccfr.policy.strategy_profile import Profile

LEAST_FLOPS = 8
"""Least number of flops of an estimate: two strata of four."""


@dataclass(frozen=True)
class FlopsEvaluation:
    """Evaluation over all flops or a sample of them, in chips per hand.

    value_chips           of player 0 when both follow the strategy, with the game's `offset_chips`
    best_response_chips   of each player's best response; on a sample, of the one behind `lower_chips`. Player 0's
                          plus `offset_chips`, player 1's minus it
    exploitability_chips  mean gain of the players' best responses; on a sample a bias-corrected estimate
    ci95_chips            its 95 % interval; None if every flop was walked
    lower_chips           on a sample: chips of a responder whose first-street choice did not see the scoring flop,
                          and the 95 % interval
    flops                 number of flops walked
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
    """Return the exploitability of a strategy of full-deck hold'em; see the module.

    flops     number drawn from all 22,100; None: all 1,755 classes, with an exact result
    progress  called after each flop with the number done and the total

    Raises `ValueError` for too few flops; also raises as `play_units`.
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
