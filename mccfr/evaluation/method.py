"""What an evaluation method answers for itself: where it can be used, what it finds, how that is told."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

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

    name   in `[evaluation]`, `evaluate --method` and records; of a user's method as the configuration has it
    bound  what the figure is of the truth: "exact", "lower", "upper" or "estimate"
    meets  whether it is played against another strategy
    reads_rows  whether it reads strategies row by row where they lie; else they are made whole in memory
    line   what a line of evaluations.jsonl must hold
    takes  the options of `find`, with what holds where none is given: those of `evaluate`, `-` written `_`
    """

    name: ClassVar[str]
    bound: ClassVar[str] = "estimate"
    meets: ClassVar[bool] = False
    reads_rows: ClassVar[bool] = False
    pairs: ClassVar[bool] = False
    line: ClassVar[type[EvaluationLine]] = EvaluationLine
    takes: ClassVar[Mapping[str, Any]] = {"boards": 1000, "seed": 0}

    def problem(self, game: "Game") -> str | None:
        """Why a game cannot be measured by it, and what to use instead; None where it can."""
        return None

    def least_boards(self, game: "Game", from_street: str | None) -> int:
        """The fewest boards that it takes, where it takes any; `ValueError` for a street that the game has not."""
        return 2

    def listing_bytes(self, game: "Game") -> int:
        """Memory that it needs besides the strategies."""
        return 0

    def prepared(self, game: "Game") -> Any:
        """What it makes of a game before it looks at a strategy, where that is worth keeping (`Profile.prepared`)."""
        return None

    @abstractmethod
    def find(self, side: "Profile", against: "Profile | None", *none: Any, **options: Any) -> dict[str, Any]:
        """What it finds, by the fields of a record; `against` is there where it `meets` another strategy.

        side     `game` and `strategy` (`mccfr.tables.strategy.Strategy`); `value_chips` must be among what is found
        options  by keyword, each of those that it `takes`
        """

    def gained(self, side: "Profile", units: Any, before: Any) -> dict[str, Any]:
        """What a strategy has gained over another one, by the fields of a record, for methods that tell it (`pairs`).

        units, before  [U, fields] what the units of both found (`Effort.note`), on the same units
        """
        return {}

    def told(self, record: Record, took: str) -> str:
        """A record as one line for people; `took` is the time."""
        return f"{self.short(record)} ({took})"

    def short(self, record: Record) -> str:
        """The same in a few words, for a progress bar."""
        return f"value {record['value_chips']:.6g} by {record['method']}"
