"""Base class of evaluation methods: where a method applies, its result, and the printed text."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from mccfr.evaluation.methods.option_structs import BoardOptions, MethodOptions

if TYPE_CHECKING:  # kernels are imported when something is measured
    from mccfr.games.game import Game
    from mccfr.policy.strategy_profile import Profile

Count = Annotated[int, msgspec.Meta(ge=0)]
Record = Mapping[str, Any]


class EvaluationLine(msgspec.Struct):
    """Fields of every line of evaluations.jsonl, for all methods; the file is in a run's directory.

    The first three are the training counters of the measured strategy: nodes, iterations, number of its checkpoint.
    """

    nodes_touched: Count
    iterations: Count
    checkpoint: Count | None
    value_chips: float
    seconds: float
    bound: str


class Method(ABC):
    """An evaluation method. Subclasses define `find`; everything else has a default.

    name        name in `[evaluation]`, `evaluate --method` and records; of a user's method: `module:Class`
    bound       relation of the result to the true value: "exact", "lower", "upper" or "estimate"
    meets       True if the strategy is played against another strategy
    reads_rows  True if strategies are read row by row in place; otherwise they are loaded into memory in full
    takes_rake  True if games with rake are allowed
    takes_seats True if games with three and more players are allowed
    line        type with the fields of the method's lines in evaluations.jsonl
    options     class of the method's options
    """

    name: ClassVar[str]
    bound: ClassVar[str] = "estimate"
    meets: ClassVar[bool] = False
    reads_rows: ClassVar[bool] = False
    takes_rake: ClassVar[bool] = False
    takes_seats: ClassVar[bool] = False
    line: ClassVar[type[EvaluationLine]] = EvaluationLine
    options: ClassVar[type[MethodOptions]] = BoardOptions

    def problem(self, game: "Game") -> str | None:
        """Return why a game cannot be measured and the alternative to use, or None."""
        return None

    def suits(self, game: "Game") -> bool:
        """Return whether `method = "auto"` may choose this method for a game that it can measure."""
        return True

    def at_once(self, game: "Game") -> bool:
        """Return whether the game is evaluated over all deals, so that sampling options have no effect."""
        del game
        return False

    def options_problem(self, game: "Game", options: Any) -> str | None:
        """Return why options of `[evaluation]` do not suit a game, or None; may raise `ValueError` instead."""
        return None

    def listing_bytes(self, game: "Game") -> int:
        """Return the bytes of memory that `find` needs besides the strategies."""
        return 0

    def in_place(self, game: "Game") -> bool:
        """Return whether `find` reads the strategy sums of full-width CFR in place, without a copy.

        It then walks them on all processors.
        """
        return False

    def without_effect(self, game: "Game", options: Any) -> frozenset[str]:
        """Return the names of options that have no effect on the evaluation of a game with these options."""
        return frozenset()

    def prepared(self, game: "Game") -> Any:
        """Return data computed from the game alone, or None if the method has no such data.

        All evaluations of a run share it; `find` reads it as `side.prepared`.
        """
        return None

    @abstractmethod
    def find(self, side: "Profile", against: "Profile | None", options: Any) -> dict[str, Any]:
        """Evaluate a strategy and return fields of a record, including `value_chips`.

        side     has `game` and `strategy` (`mccfr.tables.strategy.Strategy`)
        against  the other strategy if the method `meets` one
        options  an instance of `Method.options`. Its fields enter the record under their names, as far as records have
                 such a field and `find` does not return it
        """

    def text(self, record: Record, took: str) -> str:
        """Return a record as one line of text for the user; `took` is the duration as text."""
        return f"{self.short(record)} ({took})"

    def short(self, record: Record) -> str:
        """Return a record as a few words without the time, for a progress bar."""
        return f"value {record['value_chips']:.6g} by {record['method']}"
