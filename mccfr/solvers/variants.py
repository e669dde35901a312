"""Variants of CFR under their papers' names, and the parts that they combine.

A variant combines four parts (Brown & Sandholm 2019, AAAI):

* a regret minimiser, optimistic or not
* a discount: after iteration t positive regrets are multiplied by t^α/(t^α+1), negative ones by t^β/(t^β+1)
* an averaging power γ: strategy sums are multiplied by ((t-1)/t)^γ before iteration t's strategy is added
* alternating or simultaneous updates of the players

An exponent of ∞ means no discount; -∞ multiplies by 0, also after iteration 1.

With a constant γ iteration t has the weight t^γ in the average.  A `Ramp` changes α, β or γ from iteration to
iteration.  The weight of iteration t is then the product of ((s-1)/s)^γ_s over the later iterations s.

* DCFR+ and PDCFR+: Xu, Li, Liu, Fu, Fu, Xing & Cheng, "Minimizing Weighted Counterfactual Regret with Optimistic Online
  Mirror Descent" (IJCAI 2024, arXiv 2404.13891), section 4.  There R_t = [R_{t-1}·d_{t-1} + r_t]₊ with d_t =
  t^α/(t^α+1), and PDCFR+ plays [R_t·d_t + r_t]₊.  The tables here hold R_t·d_t, which gives the same strategies.
* HS-DCFR and HS-PCFR+: Zhang, McAleer & Sandholm, "Faster Game Solving via Hyperparameter Schedules" (AAAI 2026, arXiv
  2404.09097), equations 2 to 4 and section 3.2.

Users may define variants (`mccfr.config.plugins`) with regret rules (`mccfr.solvers.user_regret_rules`) and `Ramp`s.
Any other schedule is a class derived from `Variant` that overrides `step`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from math import exp, inf, isfinite, isnan, log
from typing import Any

from mccfr.common.arguments import check_fields
from mccfr.common.user_code import UserCodeError, calling, function_name, is_foreign
from mccfr.config.value_limits import did_you_mean
from mccfr.solvers.minimisers import NORMAL_HEDGE, OPTIMISTIC, PREDICTIVE, Step
from mccfr.solvers.user_regret_rules import RegretRule

MINIMISERS = ("regret-matching", "regret-matching-plus", "normal-hedge", "predictive")
UPDATES = ("alternating", "simultaneous")
_FLOORED = ("regret-matching-plus", "predictive")
_LARGEST_EXPONENT = 700.0  # above this exp overflows


@dataclass(frozen=True)
class Ramp:
    """A linear schedule of exponent α, β or γ: `first` at iteration 0, `last` at the horizon.

    The horizon is the planned number of iterations; afterwards the exponent stays `last`.
    """

    first: float
    last: float

    def at(self, share: float) -> float:
        """Return the exponent after a share of the planned iterations; above 1 it stays `last`.

        share  number of the iteration, divided by the horizon
        """
        return self.first + (self.last - self.first) * min(share, 1.0)


Power = float | Ramp


@dataclass(frozen=True)
class Variant:
    """A variant of CFR; `variant` finds one by name and checks that its parts fit together.

    alpha, beta      exponents α and β of the discounts of positive and of negative regrets
    averaging_power  exponent γ of the weights in the average
    optimistic       True: the last instantaneous regret is added to the regrets, as a prediction of the next
    updates          "alternating": player 1 responds to player 0's update of the same iteration; or "simultaneous"
    horizon          planned iterations, at which schedules end; None if there is no schedule or the number is not yet
                     known
    """

    regret_minimiser: str | RegretRule = "regret-matching"  # one of MINIMISERS, or a user's rule
    optimistic: bool = False
    alpha: Power = inf
    beta: Power = inf
    averaging_power: Power = 0.0
    updates: str = "alternating"
    horizon: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, Variant)

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "step" in cls.__dict__:
            cls.step = _checked(cls.__dict__["step"])  # type: ignore[assignment, method-assign]

    @property
    def user_code(self) -> str | None:
        """Return a phrase that names the user's own code of a variant; None without one.

        It is a regret rule, or the method `step` of a class derived from Variant: a schedule.
        """
        if isinstance(self.regret_minimiser, RegretRule):
            return f"the regret rule {self.regret_minimiser.name}"
        return f"the schedule {function_name(type(self).step)}" if is_foreign(type(self).step) else None

    @property
    def alternating(self) -> bool:
        """Return whether player 1 responds to player 0's update of the same iteration."""
        return self.updates == "alternating"

    @property
    def scheduled(self) -> bool:
        """Return whether α, β or γ is a `Ramp`, which needs the planned number of iterations."""
        return any(isinstance(power, Ramp) for power in (self.alpha, self.beta, self.averaging_power))

    @property
    def table_kinds(self) -> tuple[str, ...]:
        """Return the kinds of tables that the variant keeps between iterations.

        They are "regret", "strategy_sum" and, if it is optimistic, "predicted_regret".
        """
        return ("regret", "strategy_sum", *(("predicted_regret",) if self.optimistic else ()))

    def powers(self, iteration: int) -> tuple[float, float, float]:
        """Return α, β and γ of an iteration, counted from 1.

        Raises `ValueError` for a schedule without a horizon.
        """
        if self.scheduled and self.horizon is None:
            raise ValueError("horizon = None: powers on a schedule need the planned number of iterations")
        share = iteration / (self.horizon or 1)
        alpha, beta, gamma = (
            power.at(share) if isinstance(power, Ramp) else power
            for power in (self.alpha, self.beta, self.averaging_power)
        )
        return alpha, beta, gamma

    @property
    def rule(self) -> int | None:
        """Return the number of the regret minimiser for kernels; None: a form of regret matching.

        It is the constant NORMAL_HEDGE, or the address of a user's compiled rule.

        Raises `ValueError` if a user's rule does not compile.
        """
        if isinstance(self.regret_minimiser, RegretRule):
            return self.regret_minimiser.address
        return NORMAL_HEDGE if self.regret_minimiser == "normal-hedge" else None

    def step(self, iteration: int) -> Step:
        """Return the Step of an iteration, counted from 1: discounts, weight and regret rule.

        Raises `ValueError` for a schedule without a horizon, and for a user's rule that does not compile.
        """
        alpha, beta, gamma = self.powers(iteration)
        prediction = PREDICTIVE if self.regret_minimiser == "predictive" else OPTIMISTIC
        return Step(
            self.rule,
            prediction if self.optimistic else None,
            _regret_factor(iteration, alpha),
            _regret_factor(iteration, beta),
            ((iteration - 1) / iteration) ** gamma,
            1.0,
        )


def _checked(step: Callable[[Any, int], Step]) -> Callable[[Any, int], Step]:
    """Return the method `step` of a class derived from Variant, with a check of its result.

    The returned method raises `UserCodeError` if the user's code raises an exception, or returns anything but a `Step`
    of finite numbers.
    """

    @wraps(step)
    def checked(self: Variant, iteration: int) -> Step:
        with calling(step, f" for iteration {iteration}"):
            result = step(self, iteration)
            sound = isinstance(result, Step) and all(isfinite(number) for number in result if number is not None)
        if not sound:
            raise UserCodeError(
                f"{function_name(step)} returned {result!r} for iteration {iteration}; a Step of finite numbers is "
                "needed, as super().step(iteration) returns it"
            )
        return result

    return checked


def _regret_factor(iteration: int, exponent: float) -> float:
    """Return t^x/(t^x+1), for iteration t and exponent x; 1 for x = ∞ and 0 for x = -∞."""
    if not isfinite(exponent):
        return float(exponent > 0)
    power = -exponent * log(iteration)
    return 1 / (1 + exp(power)) if power < _LARGEST_EXPONENT else 0.0


PRESETS: Mapping[str, Variant] = {
    "cfr": Variant(),
    "cfr+": Variant("regret-matching-plus", beta=-inf, averaging_power=2.0),
    "lcfr": Variant(alpha=1.0, beta=1.0, averaging_power=1.0),
    "lcfr+": Variant("regret-matching-plus", alpha=1.0, beta=-inf, averaging_power=1.0),
    "dcfr": Variant(alpha=1.5, beta=0.0, averaging_power=2.0),
    "dcfr-pruning": Variant(alpha=1.5, beta=0.5, averaging_power=2.0),
    "nh-dcfr": Variant("normal-hedge", alpha=1.5, beta=0.0, averaging_power=2.0),
    "nh-lcfr": Variant("normal-hedge", alpha=1.0, beta=1.0, averaging_power=1.0),
    "optimistic-lcfr": Variant(optimistic=True, alpha=1.0, beta=1.0, averaging_power=1.0),
    "optimistic-dcfr": Variant(optimistic=True, alpha=1.5, beta=0.0, averaging_power=2.0),
    "dcfr+": Variant("regret-matching-plus", alpha=1.5, beta=-inf, averaging_power=4.0),
    "pcfr+": Variant("predictive", optimistic=True, beta=-inf, averaging_power=2.0),
    "pdcfr+": Variant("predictive", optimistic=True, alpha=2.3, beta=-inf, averaging_power=5.0),
    "hs-dcfr": Variant(alpha=Ramp(1.0, 4.0), beta=Ramp(-1.0, -3.0), averaging_power=Ramp(15.0, 10.0)),
    "hs-dcfr-30": Variant(alpha=Ramp(1.0, 4.0), beta=Ramp(-1.0, -3.0), averaging_power=Ramp(30.0, 25.0)),
    "hs-pcfr+": Variant("predictive", optimistic=True, beta=-inf, averaging_power=Ramp(15.0, 10.0)),
}
"""Variants by their papers' names; `pcfr+` is from Farina, Kroer & Sandholm 2021.

`lcfr+` weights iterations by t in regrets and average, as in the paper.  `hs-dcfr`, `hs-dcfr-30` and `hs-pcfr+` are
HS-DCFR(15), HS-DCFR(30) and HS-PCFR+(15).
"""


def variant(
    name: "str | Variant" = "cfr",
    *,
    alpha: float | None = None,
    beta: float | None = None,
    averaging_power: float | None = None,
    updates: str | None = None,
    horizon: int | None = None,
) -> Variant:
    """Return the variant of a name, or a user's variant, with the given parts replaced.

    Parts that are None stay as they are.  Minimisers that floor regrets at 0 allow β = -∞ only, and the minimiser
    "predictive" needs an optimistic variant.

    name             a key of `PRESETS`, or a Variant
    alpha, beta      exponents α and β of the discounts of positive and of negative regrets
    averaging_power  exponent γ of the weights in the average
    updates          "alternating" or "simultaneous"
    horizon          number of planned iterations, for variants with a schedule (`Ramp`); it may be set later

    Raises `ValueError` for an unknown name, and for parts that are invalid alone or together.
    """
    chosen = name if isinstance(name, Variant) else PRESETS.get(name)
    if chosen is None:
        raise ValueError(
            f"variant = {name!r}: one of {', '.join(PRESETS)}, or module:object, is needed{did_you_mean(name, PRESETS)}"
        )
    parts = {"alpha": alpha, "beta": beta, "averaging_power": averaging_power}
    fields = {**parts, "updates": updates, "horizon": horizon}
    chosen = replace(chosen, **{key: value for key, value in fields.items() if value is not None})  # type: ignore[arg-type]
    _check(chosen)
    return chosen


def _ends(power: Power) -> tuple[float, float]:
    """Return the first and the last value of α, β or γ, which differ for a `Ramp` only."""
    return (power.first, power.last) if isinstance(power, Ramp) else (power, power)


def _check(chosen: Variant) -> None:
    """Raise `ValueError` if parts of a variant, such as its exponents, are invalid alone or together."""
    if chosen.regret_minimiser not in MINIMISERS and not isinstance(chosen.regret_minimiser, RegretRule):
        raise ValueError(f"regret_minimiser = {chosen.regret_minimiser!r}: one of {', '.join(MINIMISERS)} is needed")
    if chosen.updates not in UPDATES:
        raise ValueError(f"updates = {chosen.updates!r}: one of {', '.join(UPDATES)} is needed")
    if any(isnan(alpha) or alpha == -inf for alpha in _ends(chosen.alpha)):
        raise ValueError(
            f"alpha = {chosen.alpha}: a number or inf is needed (-inf would forget every positive regret at once)"
        )
    if any(map(isnan, _ends(chosen.beta))):
        raise ValueError(f"beta = {chosen.beta}: a number, inf or -inf is needed")
    if not all(isfinite(power) and power >= 0 for power in _ends(chosen.averaging_power)):
        raise ValueError(
            f"averaging_power = {chosen.averaging_power}: a finite number of at least 0 is needed (0 averages evenly)"
        )
    if chosen.regret_minimiser in _FLOORED and chosen.beta != -inf:
        raise ValueError(
            f"beta = {chosen.beta} with regret_minimiser = {chosen.regret_minimiser!r}: it floors regrets at 0, which "
            "is beta = -inf; leave beta out or choose regret-matching"
        )
    if chosen.regret_minimiser == "predictive" and not chosen.optimistic:
        raise ValueError(
            "optimistic = false with regret_minimiser = 'predictive': it predicts the last regret to come again; "
            "choose regret-matching-plus to do without"
        )
    if chosen.horizon is not None and not chosen.scheduled:
        raise ValueError(f"horizon = {chosen.horizon:,}, and nothing of this variant follows a schedule: leave it out")
    if chosen.horizon is not None and chosen.horizon < 1:
        raise ValueError(f"horizon = {chosen.horizon}: at least 1 iteration is needed")


def warnings(chosen: Variant) -> list[str]:
    """Return a list of sentences about exponents α and β that are rarely intended; [] for presets."""
    sentences = []
    (first_alpha, last_alpha), (first_beta, last_beta) = _ends(chosen.alpha), _ends(chosen.beta)
    if first_beta > first_alpha or last_beta > last_alpha:
        sentences.append(
            f"beta = {chosen.beta} is above alpha = {chosen.alpha}: negative regrets are kept longer than positive ones"
        )
    if min(first_alpha, last_alpha) <= 0:
        sentences.append(
            f"alpha = {chosen.alpha}: half or more of every positive regret is forgotten in each iteration; the papers "
            "use 1 and more"
        )
    return sentences
