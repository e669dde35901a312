"""From a name - a policy, a run, a program - to what plays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mccfr.config.file import config_from, to_document
from mccfr.config.tables import HoldemGame
from mccfr.evaluation.match import Contender
from mccfr.evaluation.side import Side
from mccfr.play.player import PlayerSpec
from mccfr.play.programs import ProgramSpec, known_programs, program_named
from mccfr.play.seat import PolicySpec, check_threshold
from mccfr.policy import Policy, StrategySource, is_policy
from mccfr.policy.source import PolicySource
from mccfr.runs.results import open_target
from mccfr.runs.rundir import is_run, open_run


@dataclass(frozen=True)
class Manner:
    """How a policy is played, as `Seat` takes it."""

    purify: bool = False
    threshold: float = 0.0

    def __post_init__(self) -> None:
        check_threshold(self.threshold)

    def spec(self, policy: PolicySource) -> PlayerSpec:
        """A policy, played so."""
        return PolicySpec(policy, self.purify, self.threshold)


AS_WRITTEN = Manner()


@dataclass(frozen=True)
class Opened:
    """Who plays under a name, and the `[game]` table of a policy or run."""

    contender: Contender
    table: Mapping[str, Any] | None


def open_player(name: str, manner: Manner = AS_WRITTEN, beside: Sequence[Path] = (Path(),)) -> Opened:
    """Who plays under a name: that of a policy or run, or of a program.

    manner  of a policy or run
    beside  directories in which a program's module is looked for first

    Raises `ValueError` for a name of none of these, and for a manner beside a program; as `Policy.open`, `open_run`.
    """
    path = Path(name)
    if is_policy(path):
        policy = Policy.open(path)
        side = Side(policy.game, policy.strategy())
        return Opened(Contender(name, manner.spec(policy), side), policy.meta["game"])
    if is_run(path):
        found = open_target(path)
        table = to_document(open_run(path).config)["game"]
        source = StrategySource(found.game, found.strategy)
        return Opened(Contender(name, manner.spec(source), Side(found.game, found.strategy)), table)
    program = program_named(name, beside)
    if program is None:
        raise ValueError(f"{name} is neither a policy, nor a run, nor one of the programs {known_programs(name)}")
    if manner != AS_WRITTEN:
        raise ValueError(f"{name} is a program, which plays as it does: purify and threshold are for policies and runs")
    return Opened(Contender(name, ProgramSpec(program)), None)


def holdem_of(table: Mapping[str, Any] | None) -> HoldemGame | None:
    """The no-limit hold'em of a `[game]` table; None where it is another game."""
    if table is None or table.get("name") != "holdem":
        return None
    game = config_from({"game": dict(table)}, "the policy").game
    assert isinstance(game, HoldemGame)
    return game
