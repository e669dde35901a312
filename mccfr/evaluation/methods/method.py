"""What an evaluation method answers for itself: where it can be used, what it finds, how that is told."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from mccfr.evaluation.methods.options import BoardOptions, MethodOptions

if TYPE_CHECKING:  # kernels are imported when something is measured
    from mccfr.games.game import Game
    from mccfr.policy.profile import Profile

Count = Annotated[int, msgspec.Meta(ge=0)]
Record = Mapping[str, Any]


class EvaluationLine(msgspec.Struct):
    """What every line of evaluations.jsonl holds, whichever method it is of."""

    nodes_touched: Count
    iterations: Count
    checkpoint: Count | None
    value_chips: float
    seconds: float


class Method(ABC):
    """A way to measure a strategy.  What it finds is its own; for the rest there is an answer that will do.

    name        in `[evaluation]`, `evaluate --method` and records; of a user's method as the configuration has it
    bound       what the figure is of the truth: "exact", "lower", "upper" or "estimate"
    meets       whether it is played against another strategy
    reads_rows  whether it reads strategies row by row where they lie; else they are made whole in memory
    takes_rake  whether it may be of games in which the players' winnings do not sum to nothing
    pairs       whether it says what a strategy has gained since the evaluation before (`gained`)
    line        what a line of evaluations.jsonl must hold
    options     the struct of its options
    """

    name: ClassVar[str]
    bound: ClassVar[str] = "estimate"
    meets: ClassVar[bool] = False
    reads_rows: ClassVar[bool] = False
    takes_rake: ClassVar[bool] = False
    pairs: ClassVar[bool] = False
    line: ClassVar[type[EvaluationLine]] = EvaluationLine
    options: ClassVar[type[MethodOptions]] = BoardOptions

    def problem(self, game: "Game") -> str | None:
        """Why a game cannot be measured by it, and what to use instead; None where it can."""
        return None

    def suits(self, game: "Game") -> bool:
        """Whether `method = "auto"` may take it for a game that it can measure."""
        return True

    def at_once(self, game: "Game") -> bool:
        """Whether this game is evaluated over all deals, whatever options of samples say, a time among them."""
        del game
        return False

    def options_problem(self, game: "Game", options: Any) -> str | None:
        """Why options of `[evaluation]` do not suit a game, or a `ValueError` that says so; None where they do."""
        return None

    def listing_bytes(self, game: "Game") -> int:
        """Memory that it needs besides the strategies."""
        return 0

    def in_place(self, game: "Game") -> bool:
        """Whether it walks full width's sums of a game where they lie, by all processors, and copies nothing."""
        return False

    def draws_by(self, game: "Game") -> set[str]:
        """Return which options of samples, boards and seed, have an effect on a game."""
        return {"boards", "seed"} & set(self.options.__struct_fields__)

    def prepared(self, game: "Game") -> Any:
        """What it makes of a game before it looks at a strategy, where that is worth keeping (`Profile.prepared`)."""
        return None

    @abstractmethod
    def find(self, side: "Profile", against: "Profile | None", options: Any) -> dict[str, Any]:
        """What it finds, by the fields of a record, `value_chips` among them.

        side     `game` and `strategy` (`mccfr.tables.strategy.Strategy`)
        against  the same of the other strategy, where the method `meets` one
        options  an instance of its struct; a record has those of its fields that are options, unless `find` says else
        """

    def gained(self, side: "Profile", units: Any, before: Any) -> dict[str, Any]:
        """What a strategy has gained over another one, by the fields of a record, for methods that do (`pairs`).

        units, before  [U, fields] what the units of both found (`Effort.note`), on the same units
        """
        return {}

    def text(self, record: Record, took: str) -> str:
        """A record as one line for people; `took` is the time."""
        return f"{self.short(record)} ({took})"

    def short(self, record: Record) -> str:
        """The same in a few words, for a progress bar."""
        return f"value {record['value_chips']:.6g} by {record['method']}"
