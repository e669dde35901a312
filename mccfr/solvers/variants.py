"""Variants of CFR by the papers' names, and the parts they are made of (Brown & Sandholm 2019, AAAI).

A variant is a regret minimiser, optimistic or not; a discount of regrets: after iteration t positive ones are
multiplied by t^α/(t^α+1) and negative ones by t^β/(t^β+1); an averaging power γ: iteration t enters the average
strategy with the weight t^γ, kept as sums multiplied by ((t-1)/t)^γ; and whether players update in turn or at once.
∞ is no discount and -∞ multiplies by 0, also after iteration 1.

A variant of a user's is a `Variant` that a configuration names (`mccfr.config.outside`); its minimiser may be a rule of
his own (`mccfr.solvers.rules`), and another schedule is a class derived from `Variant` with a `step` of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import exp, inf, isfinite, isnan, log

from mccfr.config.suggest import did_you_mean
from mccfr.solvers.minimisers import NORMAL_HEDGE, REGRET_MATCHING, Step
from mccfr.solvers.rules import RegretRule

MINIMISERS = ("regret-matching", "regret-matching-plus", "normal-hedge", "predictive")
UPDATES = ("alternating", "simultaneous")
_FLOORED = ("regret-matching-plus", "predictive")
_LARGEST_EXPONENT = 700.0  # exp of more overflows


@dataclass(frozen=True)
class Variant:
    """A variant of CFR; `variant` finds one by its name and checks that its parts make sense together."""

    regret_minimiser: str | RegretRule = "regret-matching"  # one of MINIMISERS, or a rule of one's own
    optimistic: bool = False
    alpha: float = inf
    beta: float = inf
    averaging_power: float = 0.0
    updates: str = "alternating"

    @property
    def alternating(self) -> bool:
        """Whether player 1 answers the player 0 that has been updated in the same iteration."""
        return self.updates == "alternating"

    @property
    def table_kinds(self) -> tuple[str, ...]:
        """Kinds of tables the variant keeps from one iteration to the next, `tables.table_name`'s first part."""
        return ("regret", "strategy_sum", *(("predicted_regret",) if self.optimistic else ()))

    @property
    def rule(self) -> int:
        """As `Step.rule`; `ValueError` for a rule that does not compile."""
        if isinstance(self.regret_minimiser, RegretRule):
            return self.regret_minimiser.address
        return NORMAL_HEDGE if self.regret_minimiser == "normal-hedge" else REGRET_MATCHING

    def step(self, iteration: int) -> Step:
        """What kernels need in an iteration, counted from 1."""
        return Step(
            self.rule,
            int(self.optimistic),
            _regret_factor(iteration, self.alpha),
            _regret_factor(iteration, self.beta),
            ((iteration - 1) / iteration) ** self.averaging_power,
            1.0,
        )


def _regret_factor(iteration: int, exponent: float) -> float:
    """t^x/(t^x+1); 1 at x = ∞ and 0 at x = -∞ for every t."""
    if not isfinite(exponent):
        return float(exponent > 0)
    power = -exponent * log(iteration)
    return 1 / (1 + exp(power)) if power < _LARGEST_EXPONENT else 0.0


PRESETS: Mapping[str, Variant] = {
    "cfr": Variant(),
    "cfr+": Variant("regret-matching-plus", beta=-inf, averaging_power=2.0),
    "lcfr": Variant(alpha=1.0, beta=1.0, averaging_power=1.0),
    "lcfr+": Variant("regret-matching-plus", alpha=1.0, beta=-inf, averaging_power=1.0),
    "lcfr+quadratic": Variant("regret-matching-plus", alpha=1.0, beta=-inf, averaging_power=2.0),
    "dcfr": Variant(alpha=1.5, beta=0.0, averaging_power=2.0),
    "dcfr-pruning": Variant(alpha=1.5, beta=0.5, averaging_power=2.0),
    "nh-dcfr": Variant("normal-hedge", alpha=1.5, beta=0.0, averaging_power=2.0),
    "nh-lcfr": Variant("normal-hedge", alpha=1.0, beta=1.0, averaging_power=1.0),
    "optimistic-lcfr": Variant(optimistic=True, alpha=1.0, beta=1.0, averaging_power=1.0),
    "optimistic-dcfr": Variant(optimistic=True, alpha=1.5, beta=0.0, averaging_power=2.0),
    "predictive-cfr+": Variant("predictive", optimistic=True, beta=-inf, averaging_power=2.0),
}
"""Variants by the papers' names; `predictive-cfr+` is that of Farina, Kroer & Sandholm 2021.

`lcfr+` weighs iterations by t in regrets and average alike, as the paper has it; `lcfr+quadratic`, of no paper, is the
same with the average of CFR+, by t².
"""


def variant(
    name: "str | Variant" = "cfr",
    *,
    regret_minimiser: str | None = None,
    optimistic: bool | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    averaging_power: float | None = None,
    updates: str | None = None,
) -> Variant:
    """The variant of a name, or a user's, with the parts that are not None put in place of its own.

    A minimiser that floors regrets brings β = -∞ with it, and `predictive` is optimistic.  Raises `ValueError` for an
    unknown name and for parts that make no sense, alone or together.
    """
    made = name if isinstance(name, Variant) else PRESETS.get(name)
    if made is None:
        raise ValueError(
            f"variant = {name!r}: one of {', '.join(PRESETS)}, or module:object, is needed{did_you_mean(name, PRESETS)}"
        )
    if regret_minimiser is not None and regret_minimiser != made.regret_minimiser:
        made = _with_minimiser(made, regret_minimiser)
    given = {
        "optimistic": optimistic,
        "alpha": alpha,
        "beta": beta,
        "averaging_power": averaging_power,
        "updates": updates,
    }
    made = replace(made, **{key: value for key, value in given.items() if value is not None})  # type: ignore[arg-type]
    _check(made)
    return made


def _with_minimiser(made: Variant, regret_minimiser: str) -> Variant:
    """The variant with another minimiser, and with what the minimiser brings."""
    if regret_minimiser in _FLOORED:
        made = replace(made, beta=-inf, optimistic=made.optimistic or regret_minimiser == "predictive")
    return replace(made, regret_minimiser=regret_minimiser)


def _check(made: Variant) -> None:
    """`ValueError` for parts that make no sense."""
    if made.regret_minimiser not in MINIMISERS and not isinstance(made.regret_minimiser, RegretRule):
        raise ValueError(f"regret_minimiser = {made.regret_minimiser!r}: one of {', '.join(MINIMISERS)} is needed")
    if made.updates not in UPDATES:
        raise ValueError(f"updates = {made.updates!r}: one of {', '.join(UPDATES)} is needed")
    if isnan(made.alpha) or made.alpha == -inf:
        raise ValueError(
            f"alpha = {made.alpha}: a number or inf is needed (-inf would forget every positive regret at once)"
        )
    if isnan(made.beta):
        raise ValueError(f"beta = {made.beta}: a number, inf or -inf is needed")
    if not (isfinite(made.averaging_power) and made.averaging_power >= 0):
        raise ValueError(
            f"averaging_power = {made.averaging_power}: a finite number of at least 0 is needed (0 averages evenly)"
        )
    if made.regret_minimiser in _FLOORED and made.beta != -inf:
        raise ValueError(
            f"beta = {made.beta} with regret_minimiser = {made.regret_minimiser!r}: it floors regrets at 0, which is "
            "beta = -inf; leave beta out or choose regret-matching"
        )
    if made.regret_minimiser == "predictive" and not made.optimistic:
        raise ValueError(
            "optimistic = false with regret_minimiser = 'predictive': it predicts the last regret to come again; "
            "choose regret-matching-plus to do without"
        )


def warnings(made: Variant) -> list[str]:
    """Sentences about settings that are allowed but rarely meant; empty for every preset."""
    found = []
    if made.beta > made.alpha:
        found.append(
            f"beta = {made.beta} is above alpha = {made.alpha}: negative regrets are kept longer than positive ones"
        )
    if made.alpha <= 0:
        found.append(
            f"alpha = {made.alpha}: half or more of every positive regret is forgotten in each iteration; the papers "
            "use 1 and more"
        )
    return found
