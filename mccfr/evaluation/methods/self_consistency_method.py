"""The method `self-consistency`: gain of the best single deviations from a policy."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from mccfr.evaluation.methods.method import Count, EvaluationLine, Record
from mccfr.evaluation.methods.option_structs import BOARDS, FROM, SEED, WORKERS, MethodOptions
from mccfr.evaluation.methods.sampled_methods import SAMPLING, OverDeals, street_number

if TYPE_CHECKING:  # kernels are imported when something is measured
    from mccfr.games.game import Game
    from mccfr.policy.strategy_profile import Profile


class SelfConsistencyOptions(MethodOptions, frozen=True):
    """Options of `self-consistency`; `from_street` None: the first street with a board."""

    from_street: Annotated[str | None, FROM] = msgspec.field(default=None, name="from")
    boards: Annotated[int | None, BOARDS] = None
    seed: Annotated[int, SEED] = 0
    workers: Annotated[int, WORKERS] = 1


class SelfConsistencyLine(EvaluationLine):
    """Record of the method `self-consistency`."""

    ci95_chips: tuple[float, float]
    boards: Count
    training_chips: float
    buckets_chips: float
    streets: list[dict[str, Any]]


class SelfConsistencyMethod(OverDeals):
    """Chips per hand that the best single deviations gain over the policy, by street."""

    name: ClassVar[str] = "self-consistency"
    reads_rows: ClassVar[bool] = True
    line: ClassVar[type[EvaluationLine]] = SelfConsistencyLine
    options: ClassVar[type[MethodOptions]] = SelfConsistencyOptions

    def without_effect(self, game: "Game", options: SelfConsistencyOptions) -> frozenset[str]:
        """Return all options of samples if the game lists its boards: the method walks every board."""
        return frozenset() if game.cards.boards is None else SAMPLING | {"boards", "from_street"}

    def find(self, side: "Profile", against: "Profile | None", options: SelfConsistencyOptions) -> dict[str, Any]:
        """Measure the losses and return the record's fields."""
        from mccfr.evaluation.self_consistency import self_consistency

        game = side.game
        street = None if options.from_street is None else street_number(game, options.from_street)
        result = self_consistency(side, street, options.boards, options.seed, options.workers)
        streets = [
            {
                "street": game.street_name(number),
                "lost_chips": lost,
                "ci95_chips": list(interval),
                "training_chips": training,
                "training_ci95_chips": list(trained),
                "buckets_chips": lost - training,
            }
            for number, ((lost, interval), (training, trained)) in enumerate(
                zip(result.streets, result.training, strict=True)
            )
        ]
        training, (lost, interval) = sum(chips for chips, _ in result.training), result.lost
        return {
            "value_chips": lost,
            "ci95_chips": list(interval),
            "training_chips": training,
            "buckets_chips": lost - training,
            "streets": streets,
            "boards": result.boards,
            "units": result.boards,
        }

    def text(self, record: Record, took: str) -> str:
        """Return the record as one line of text, with losses by street."""
        low, high = record["ci95_chips"]
        error = f"95 %: {low:.4g} to {high:.4g}; " if low < high else ""
        parts = [
            f"{row['street']} {row['lost_chips']:.4g} ({row['training_chips']:.4g} by training)"
            for row in record["streets"]
        ]
        split = f"{record['training_chips']:.4g} by training, {record['buckets_chips']:.4g} by buckets"
        return (
            f"{self.short(record)}, {split} ({error}{record['boards']:,} boards, {took}); by street {', '.join(parts)}"
        )

    def short(self, record: Record) -> str:
        """Return the total loss as a short text."""
        return f"loses {record['value_chips']:.4g} chips a hand against its own continuation"
