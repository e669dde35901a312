"""Defines the EV that page, terminal, reports, UPI and Python show, and computes it from arrays.

The page is that of `mccfr view`, and UPI is PioSOLVER's text protocol.

The EV of a hand at a decision counts the chips that the player expects to receive from the pot. Chips that the player
puts in from there on are subtracted; earlier ones are not, so folding has EV 0. Both players follow the strategy that
is shown. The opponent has the range that reaches the decision, without the hands that share a card with the hand. Means
over hands weigh each hand by its own reach times the weight of the opposing hands that it does not block.

For each hand, the sum over actions of frequency times EV is the EV of the hand. The EV of an action of a range is that
of the hands that take it, so the same holds for the range.
"""

import numpy as np
import numpy.typing as npt

from mccfr.play.showdown_values import per_weight

Floats = npt.NDArray[np.float64]
_LEAST_EQUITY = 0.01
"""Equity below which EQR is left out: a quotient of two small numbers says nothing."""


def hand_ev(won: Floats, opposing: Floats, put_in: float) -> Floats:
    """Return [..., H] the EV of each hand in chips; NaN for hands that no opposing hand can meet.

    won       [..., H] for each hand, the weighted sum over opposing hands of net chips won over the whole hand of
              poker. All chips that the player puts in are subtracted
    opposing  [H] for each hand, the sum of these weights: total weight of the opposing hands that share no card with it
    put_in    chips that the player has put in before the decision, over the whole hand
    """
    return per_weight(won, opposing) + put_in


def range_mean(values: Floats, weight: Floats) -> float | None:
    """Return the weighted mean of a range's values, such as EVs; None without a known value.

    values  [H] of the hands; NaN if unknown, which leaves the hand out
    weight  [H] each hand's reach times the total weight of the opposing hands that share no card with it
    """
    known = (weight > 0) & ~np.isnan(values)
    total = float(weight[known].sum())
    return float(weight[known] @ values[known]) / total if total > 0 else None


def action_means(ev: Floats, played: Floats, weight: Floats) -> list[tuple[float | None, float | None]]:
    """Return for each action (how often the range takes it, mean EV of the hands that take it).

    The frequency is 0 to 1, the EV in chips; each is None if unknown.

    ev, played  [A, H] EV in chips, and probability, of each action with each hand
    weight      [H] each hand's reach times the total weight of the opposing hands that share no card with it
    """
    return [(range_mean(share, weight), range_mean(one, weight * share)) for one, share in zip(ev, played, strict=True)]


def realisation(ev: float | None, equity: float | None, pot: float) -> float | None:
    """Return the equity realisation EV / (equity · pot); None if unknown or equity is below 0.01.

    ev      EV in chips; None: unknown
    equity  mean share of the pot at showdown, 0 to 1; None: unknown
    pot     chips in the pot at the decision
    """
    return None if ev is None or equity is None or equity < _LEAST_EQUITY else ev / (equity * pot)
