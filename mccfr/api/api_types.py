"""Result types of the Python interface, and helpers for its arguments."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from mccfr.evaluation.methods.registry import record_text
from mccfr.matches.match_series import match_text

Pathlike = str | os.PathLike[str]


@dataclass(frozen=True)
class Progress:
    """Progress of a solver or a run; `str` gives it as one line of text.

    iterations, nodes_touched  totals, with those of earlier sessions of a run
    seconds, nodes_per_second  training time and mean speed; of a run, those of this session
    share_done                 share of the nearest limit that is done, 0 to 1; 0 without a limit
    """

    iterations: int
    nodes_touched: int
    seconds: float
    nodes_per_second: float
    share_done: float

    def __str__(self) -> str:
        counts = f"{self.iterations:,} iterations, {self.nodes_touched:,} nodes"
        return f"{counts}, {self.nodes_per_second / 1e6:.1f} M nodes/s, {self.share_done:.0%}"


@dataclass(frozen=True)
class Evaluation:
    """Result of an evaluation of a strategy, with the fields of `mccfr evaluate --json`.

    A field is None if the method does not give it.  "The response" is the strategy against the evaluated one that the
    method found.

    method, bound         name of the method, and its result's kind: "exact", "lower", "upper" or "estimate"
    value_chips           chips per hand: of player 0 if all play the strategy; head-to-head: of the strategy against
                          the opponent; lbr, sampled-br and bounds: of the response
    exploitability_chips  mean over players of the gain of a best response, or the bound on it, per hand
    exploitability_mbb    the same in thousandths of a big blind
    best_response_chips   chips per hand that the response wins as each player
    ci95_chips            95 % interval of `value_chips`; of `exploitability_chips` if exact samples flops
    against, boards, seed the opponent, the number of sampled boards and their seed
    seconds                                wall time, without compilation
    iterations, nodes_touched, checkpoint  of the evaluated strategy
    record                                 all fields by name, including those of a user's method
    """

    method: str
    bound: str
    value_chips: float
    exploitability_chips: float | None
    exploitability_mbb: float | None
    best_response_chips: tuple[float, ...] | None
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
    """Result of a match: mean winnings of A per hand, with the fields of `mccfr match --json`.

    Amounts end in `_chips`, or `_mbb`: thousandths of a big blind, None if the game has none.

    a, b, hands, seed, seconds   names, number of hands, seed of the deals, duration
    mean_, ci95_...              A's winnings per hand, and their 95 % interval
    allin_...                    the same with pots of all-in hands replaced by their expected value
    aivat_...                    the same with the AIVAT correction for luck
    record                       all fields by name

    The fields allin_... and aivat_... are None for three and more players.
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
    """Convert a result's {name: value} to the dataclass `kind`; its field `record` holds them all.

    Missing fields become None, and lists become tuples.
    """
    values = {field.name: record.get(field.name) for field in fields(kind)}
    tuples = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
    return kind(**{**values, **tuples, "record": dict(record)})


def match_of(record: Mapping[str, Any]) -> MatchResult:
    """Convert the record of a match, with the fields of `mccfr match --json`, to a `MatchResult`."""
    result: MatchResult = _filled(MatchResult, record)
    return result


def evaluation_of(record: Mapping[str, Any]) -> Evaluation:
    """Convert an evaluation record (a line of evaluations.jsonl) to an `Evaluation`."""
    result: Evaluation = _filled(Evaluation, record)
    return result


def toml_value(value: Any) -> Any:
    """Convert a Python value to the types of TOML: mappings to dicts, tuples to lists, paths to text."""
    if isinstance(value, Mapping):
        return {key: toml_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [toml_value(item) for item in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value
