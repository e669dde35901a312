"""What the interface hands back and what all of it takes."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from mccfr.evaluation.methods import record_text
from mccfr.runs.results.matches import match_text

Pathlike = str | os.PathLike[str]


@dataclass(frozen=True)
class Progress:
    """How far a solver is; its text says so in a line.

    iterations, nodes_touched, seconds  of the solver so far; seconds are those of training
    share_done                          of what `run` was asked for, 0 to 1
    """

    iterations: int
    nodes_touched: int
    seconds: float
    share_done: float

    def __str__(self) -> str:
        speed = self.nodes_touched / self.seconds if self.seconds else 0.0
        return (
            f"{self.iterations:,} iterations, {self.nodes_touched:,} nodes, {speed / 1e6:.1f} M nodes/s, "
            f"{self.share_done:.0%}"
        )


@dataclass(frozen=True)
class Evaluation:
    """What a strategy is worth.  Fields are those of `mccfr evaluate --json`; None where a method has none of it.

    method, bound         which method, and what it gives: "exact", "lower", "upper" or "estimate"
    value_chips           what player 0 wins on average; played against another strategy: what the one measured wins
    exploitability_chips  mean over both players of what a best response gains
    exploitability_mbb    the same in thousandths of a big blind
    best_response_chips   what each player gets by a best response
    ci95_chips            95 % interval of `value_chips`
    against, boards, seed the opponent, the boards sampled and their seed
    seconds               wall time, without that of compiling
    iterations, nodes_touched, checkpoint   of what was evaluated
    record                all fields, those of a user's method included
    """

    method: str
    bound: str
    value_chips: float
    exploitability_chips: float | None
    exploitability_mbb: float | None
    best_response_chips: tuple[float, float] | None
    ci95_chips: tuple[float, float] | None
    against: str | None
    boards: int | None
    seed: int | None
    seconds: float
    iterations: int | None
    nodes_touched: int | None
    checkpoint: int | None
    record: Mapping[str, Any]

    def __str__(self) -> str:
        return record_text(self.record, f"{self.seconds:.3g} s")


@dataclass(frozen=True)
class MatchResult:
    """What the first of two players wins a hand.  Fields are those of `mccfr match --json`; chips, and thousandths of a
    big blind (None where there is none).

    a, b, hands, seed, seconds   who played, how many hands, of which deals, how long
    mean, ci95                   the chips as they were won, and the 95 % interval
    allin_...                    with all-ins settled by their mean
    aivat_...                    without the luck of cards and of known strategies
    record                       all fields
    """

    a: str
    b: str
    hands: int
    seed: int
    seconds: float
    mean_chips: float
    ci95_chips: tuple[float, float]
    mean_mbb: float | None
    ci95_mbb: tuple[float, float] | None
    allin_mean_chips: float
    allin_ci95_chips: tuple[float, float]
    aivat_mean_chips: float
    aivat_ci95_chips: tuple[float, float]
    aivat_mean_mbb: float | None
    aivat_ci95_mbb: tuple[float, float] | None
    record: Mapping[str, Any]

    def __str__(self) -> str:
        return match_text(self.record)


def _filled(kind: type[Any], record: Mapping[str, Any]) -> Any:
    """A record by the fields of a class: what it has not is None, lists are tuples."""
    found = {field.name: record.get(field.name) for field in fields(kind)}
    pairs = {key: tuple(value) for key, value in found.items() if isinstance(value, list)}
    return kind(**{**found, **pairs, "record": dict(record)})


def match_of(record: Mapping[str, Any]) -> MatchResult:
    """What `play_match` returns as a `MatchResult`."""
    made: MatchResult = _filled(MatchResult, record)
    return made


def evaluation_of(record: Mapping[str, Any]) -> Evaluation:
    """A line of evaluations.jsonl as an `Evaluation`."""
    made: Evaluation = _filled(Evaluation, record)
    return made


def plain(value: Any) -> Any:
    """Keys as TOML would have them: paths as text."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value
