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
    """Fields that all evaluation results have, as JSON lines of evaluations.jsonl in a run.

    nodes_touched, iterations  counters of the measured strategy's training, since the run began
    checkpoint                 number of the checkpoint that has the measured strategy; None: no checkpoint has it
    value_chips                main number of the result in chips, such as player 0's value or a lower bound
    seconds                    duration of the evaluation, without the compilation of kernels
    bound                      relation of the result to the true value: "exact", "lower", "upper" or "estimate"
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
    meets       True if the method needs a second strategy, against which the first is played
    reads_rows  True if the method reads a strategy decision by decision; otherwise all its probabilities are in memory
                at once
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
        """Return a sentence why a game cannot be measured and what to use instead; None if it can."""
        return None

    def suits(self, game: "Game") -> bool:
        """Return whether the setting `method = "auto"` may choose this method for a game."""
        return True

    def at_once(self, game: "Game") -> bool:
        """Return True if the method evaluates the game over all deals in one walk, without sampling."""
        del game
        return False

    def options_problem(self, game: "Game", options: Any) -> str | None:
        """Return a sentence why options of a run's configuration do not suit a game; None if they do.

        May raise `ValueError` instead.

        options  values of the table `[evaluation]` as an instance of the method's `options` class
        """
        return None

    def listing_bytes(self, game: "Game") -> int:
        """Return the bytes of memory that an evaluation of a game needs for lists of its boards.

        The probabilities of the evaluated strategies are not included. 0 if the method lists no boards.
        """
        return 0

    def in_place(self, game: "Game") -> bool:
        """Return whether `find` reads a solver's strategy sums in place, without copying them.

        It then uses all processors. Only strategy sums of full-width CFR (without sampling) are read so. The default is
        False.
        """
        return False

    def without_effect(self, game: "Game", options: Any) -> frozenset[str]:
        """Return names of options that have no effect on the evaluation of a game.

        options  the values of all options, on which this may depend
        """
        return frozenset()

    def prepared(self, game: "Game") -> Any:
        """Return data that the method computes from the game alone; None if it has no such data.

        All evaluations of a run share it; `find` gets it as the attribute `prepared` of its argument `side`.
        """
        return None

    @abstractmethod
    def find(self, side: "Profile", against: "Profile | None", options: Any) -> dict[str, Any]:
        """Evaluate a strategy; return {name: value} of the result, including `value_chips`.

        side     the game and the strategy to evaluate, as attributes `game` and `strategy`
        against  the game and strategy to play against, for a method that needs one (`Method.meets`); else None
        options  an instance of `Method.options`. Its fields are added to the result, as far as results have fields of
                 these names and `find` does not return them
        """

    def text(self, record: Record, took: str) -> str:
        """Return a result as one line of text for the user.

        record  {name: value} of the result
        took    duration of the evaluation, as text
        """
        return f"{self.short(record)} ({took})"

    def short(self, record: Record) -> str:
        """Return a result in a few words, without the duration, for a progress bar.

        record  {name: value} of the result
        """
        return f"value {record['value_chips']:.6g} by {record['method']}"
