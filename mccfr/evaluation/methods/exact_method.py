"""The method `exact`: exploitability over all deals."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mccfr.evaluation.evaluation_progress import report_step
from mccfr.evaluation.methods.method import EvaluationLine, Method, Record
from mccfr.evaluation.methods.option_structs import FLOPS, MethodOptions, SampledOptions, declared, flags
from mccfr.evaluation.methods.sampled_methods import exploitability_text, in_mbb

if TYPE_CHECKING:  # kernels are imported when something is measured
    from mccfr.games.game import Game
    from mccfr.policy.strategy_profile import Profile


ALL_FLOPS = 1755
"""Number of flops that differ by more than suits."""
_FLOP_SECONDS = 11 / 3362  # core seconds per flop and tree node, measured with hunl-quick


class ExactLine(EvaluationLine):
    """Fields of one result of the method `exact`: a JSON line of the file evaluations.jsonl.

    `best_response_chips` has one entry for each player. So has `gains_chips`, the gains of best responses, which is
    None for two players.
    """

    exploitability_chips: float
    exploitability_mbb: float | None
    best_response_chips: tuple[float, ...]
    gains_chips: tuple[float, ...] | None = None


class ExactOptions(SampledOptions, frozen=True):
    """Options of `exact` for games evaluated flop by flop; others take only the seed, without effect.

    flops  number of flops drawn for an estimate; None: all

    Games evaluated flop by flop are full-deck hold'em with more than three board cards.
    """

    flops: Annotated[int | None, FLOPS] = None


class ExactMethod(Method):
    """Value and exploitability over all deals.

    Full-deck hold'em with more than three board cards is walked flop by flop. With a number of flops or a time budget,
    the result is an estimate from drawn flops.
    """

    name: ClassVar[str] = "exact"
    bound: ClassVar[str] = "exact"
    line: ClassVar[type[EvaluationLine]] = ExactLine
    options: ClassVar[type[MethodOptions]] = ExactOptions
    takes_rake: ClassVar[bool] = True
    takes_seats: ClassVar[bool] = True

    def problem(self, game: "Game") -> str | None:
        """Return a sentence why the game cannot be evaluated, or None if it can.

        It cannot with three and more players if the cards are not in the tree.
        """
        if game.tree.pots is None:
            return None
        return f"{game.name} with {game.tree.players} players has no exact evaluation: use the method trained-response"

    def options_problem(self, game: "Game", options: ExactOptions) -> str | None:
        """Return a sentence if exact evaluation would take hours while a run waits for it, else None.

        It would for full-deck hold'em with more than three board cards. `options` have no effect.
        """
        if self.at_once(game):
            return None
        return (
            f"{game.name} is too large for exact exploitability while a run waits: use the method lbr, and estimate it "
            "afterwards with `mccfr evaluate --method exact --flops N`"
        )

    def listing_bytes(self, game: "Game") -> int:
        """Return the additional bytes of memory for arrays of all boards of a game; 0 if none are needed."""
        return game.cards.listing_bytes

    def suits(self, game: "Game") -> bool:
        """Return whether the setting `method = "auto"` of a run may choose this method for a game.

        It may not for full-deck hold'em with more than three board cards, which takes hours.
        """
        return self.at_once(game)

    def at_once(self, game: "Game") -> bool:
        """Return whether one walk of the game evaluates all deals; False if each flop is walked alone.

        Flops are walked alone in full-deck hold'em with more than three board cards.
        """
        return not _by_flops(game)

    def in_place(self, game: "Game") -> bool:
        """Return whether `find` reads the strategy sums where they are, without copying them.

        It does so if there are 131,072 sums or more, the game has no card abstraction, and all deals are evaluated in
        one walk. Games with the cards in their tree are not read so.
        """
        from mccfr.solvers.public.best_response import is_large

        return not _by_flops(game) and is_large(game)

    def without_effect(self, game: "Game", options: ExactOptions) -> frozenset[str]:
        """Return names of options without effect: {"seed"}; for a game evaluated flop by flop none."""
        return frozenset() if _by_flops(game) else frozenset({"seed"})

    def prepared(self, game: "Game") -> Any:
        """Return the public tree that all evaluations of a game can use; None if there is none to reuse."""
        from mccfr.evaluation.exact import prepared_tree

        return None if _by_flops(game) else prepared_tree(game)

    def find(self, side: "Profile", against: "Profile | None", options: MethodOptions) -> dict[str, Any]:
        """Evaluate a strategy; return {name: value} of the result.

        It covers all deals, or is an estimate from drawn flops.

        side     the game and the strategy to evaluate; its `prepared` may be the game's public tree
        against  not used
        options  an instance of `ExactOptions`

        Raises `ValueError` for options other than the seed if the game is not evaluated flop by flop. Evaluation flop
        by flop raises `StoppedError` if a signal stops it, and `RuntimeError` if a worker process dies.
        """
        from mccfr.evaluation.preflop_best_response import evaluate_flops

        assert isinstance(options, ExactOptions)
        if not _by_flops(side.game):
            if options != ExactOptions(seed=options.seed):
                option_names = flags(declared(ExactOptions))
                raise ValueError(f"{side.game.name} is evaluated at once, over all deals: leave out {option_names}")
            return self._over_all_deals(side)
        if options.flops is None and options.budget_seconds is None:
            hours = ALL_FLOPS * _FLOP_SECONDS * side.game.tree.nodes / 3600
            report_step(f"all flops, some {hours:.2g} hours of a core (--flops N estimates it): flop", 0, ALL_FLOPS)
        result = evaluate_flops(side, options.flops, options.seed, options.effort)
        game, chips = side.game, result.exploitability_chips
        record = {
            "value_chips": result.value_chips,
            "exploitability_chips": chips,
            "exploitability_mbb": in_mbb(game, chips),
            "best_response_chips": list(result.best_response_chips),
            "units": result.flops,
        }
        if result.ci95_chips is None or result.lower_chips is None:
            return record
        lower, ends = result.lower_chips
        return record | {
            "bound": "estimate",
            "ci95_chips": list(result.ci95_chips),
            "ci95_mbb": [in_mbb(game, end) for end in result.ci95_chips],
            "lower_chips": lower,
            "lower_ci95_chips": list(ends),
        }

    @staticmethod
    def _over_all_deals(side: "Profile") -> dict[str, Any]:
        from mccfr.evaluation.exact import evaluate_exact
        from mccfr.tables.strategy import Strategy

        assert isinstance(side.strategy, Strategy)
        result = evaluate_exact(side.game, side.strategy, side.prepared)
        return {
            "value_chips": result.value_chips,
            "exploitability_chips": result.exploitability_chips,
            "exploitability_mbb": in_mbb(side.game, result.exploitability_chips),
            "best_response_chips": [float(chips) for chips in result.best_response_chips],
        } | ({} if result.gains_chips is None else {"gains_chips": list(result.gains_chips)})

    def text(self, record: Record, took: str) -> str:
        """Return a result as one line of text for the user.

        record  {name: value} of the result
        took    duration of the evaluation, as text
        """
        size = exploitability_text(record, 6)
        if record.get("gains_chips") is not None:
            return f"{_seats_text(record)} (exact, {took})"
        value = f"value for player 0 {record['value_chips']:.6g} chips"
        if record.get("bound", self.bound) == self.bound:
            return f"exploitability {size}, {value} (exact, {took})"
        mbb, chips = record["exploitability_mbb"], record["exploitability_chips"]
        unit = mbb / chips if mbb is not None and chips else 1.0
        low, high, least = (unit * bound for bound in (*record["ci95_chips"], record["lower_ci95_chips"][0]))
        return (
            f"exploitability about {size} (95 %: {low:.5g} to {high:.5g}), at least {least:.5g}, {value} "
            f"({record['units']:,} flops of 22,100, {took})"
        )

    def short(self, record: Record) -> str:
        """Return the exploitability of a result in a few words, for a progress bar.

        record  {name: value} of the result
        """
        about = "" if record.get("bound", self.bound) == self.bound else "about "
        return f"exploitability {about}{exploitability_text(record)}"


def _seats_text(record: Record) -> str:
    """Return NashConv, and each player's value and gain of a best response, as text for the user.

    record  {name: value} of a result for three or more players, which has `gains_chips`
    """
    gains, best = record["gains_chips"], record["best_response_chips"]
    seats = (
        f"player {player}: value {response - gain:.6g}, gain {gain:.6g}"
        for player, (response, gain) in enumerate(zip(best, gains, strict=True))
    )
    return f"NashConv {sum(gains):.6g} chips; {'; '.join(seats)}"


def _by_flops(game: "Game") -> bool:
    """Return whether the game is full-deck hold'em that continues after the flop."""
    return game.cards.dealt and not game.cards.can_list
