"""Opens a player by name: a policy, a run or a program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mccfr.config.game_tables import HoldemGame
from mccfr.config.toml_files import config_from, to_document
from mccfr.matches.match import Contender
from mccfr.matches.programs import ProgramSpec, find_program, known_programs
from mccfr.play.player import PlayerSpec
from mccfr.play.policy_seat import PolicySpec
from mccfr.play.resolving.resolving_seat import ResolvingSpec
from mccfr.play.resolving.resolving_table import Settings, settings_of
from mccfr.policy import Policy, Profile, is_policy
from mccfr.policy.strategy_profile import Behaviour
from mccfr.runs.directory.run import is_run, open_run
from mccfr.runs.results.targets import Reference, open_target
from mccfr.tables.purification import check_threshold


@dataclass(frozen=True)
class PlayManner:
    """Changes to how a policy plays: purified, with a threshold, or re-solved (`mccfr.play.resolving`).

    purify     always play the likeliest action
    threshold  actions with a lower probability are not played, unless all actions are less likely
    resolve    settings of re-solving; None: no re-solving
    """

    purify: bool = False
    threshold: float = 0.0
    resolve: Settings | None = None

    @classmethod
    def of_options(cls, options: Mapping[str, Any]) -> "PlayManner":
        """Return the manner that a command's options --purify, --threshold and --resolve describe.

        options  {name: value}; "resolve" is a text such as "river", or None
        """
        resolve = None if options["resolve"] is None else settings_of(options["resolve"])
        return cls(options["purify"], options["threshold"], resolve)

    def __post_init__(self) -> None:
        check_threshold(self.threshold)
        if self.resolve is not None and (self.purify or self.threshold):
            raise ValueError("purify and threshold change a policy as it is written: with resolve, leave them out")

    def spec(self, policy: Behaviour) -> PlayerSpec:
        """Return a `PlayerSpec`, a factory of players, for a policy with these changes."""
        if self.resolve is not None:
            return ResolvingSpec(policy, self.resolve)
        return PolicySpec(policy, self.purify, self.threshold)


AS_WRITTEN = PlayManner()
_RESOLVE = " --resolve "


@dataclass(frozen=True)
class OpenedPlayer:
    """A player opened by name, for matches and reviews.

    contender  participant of a match: has a factory of players, and the strategy if it is a policy or run
    table      `[game]` table of its configuration, with stacks and blinds; None for a program
    """

    contender: Contender
    table: Mapping[str, Any] | None


def is_policy_name(name: str) -> bool:
    """Return whether a player's name is an existing path, as for a policy or run, also with re-solving.

    Re-solving is text after the path, such as " --resolve river". The content at the path is not checked.
    """
    return Path(name.partition(_RESOLVE)[0]).exists()


def open_player(
    name: str, manner: PlayManner = AS_WRITTEN, search_directories: Sequence[Path] = (Path(),), *, programs: bool = True
) -> OpenedPlayer:
    """Open a player by its name: a policy, run or program.

    The name of a policy or run may include its re-solving: "hunl-quick-policy --resolve river".

    manner              how a policy or run plays, such as purified; re-solving in the name replaces its `resolve`
    search_directories  directories searched first for a program's module
    programs            False: only policies and runs are accepted

    Raises `ValueError` for an unknown name, a manner for a program, or a directory that is no valid policy or run.
    Raises `DamagedError` or `UnreadableError` if a file of it is damaged or cannot be read.
    """
    base_name, resolves, settings = name.partition(_RESOLVE)
    path = Path(base_name)
    if resolves:
        manner = replace(manner, resolve=settings_of(settings))
    if is_policy(path):
        policy = Policy.open(path)
        side = Profile(policy.game, policy.strategy())
        return OpenedPlayer(Contender(name, manner.spec(policy), side), policy.meta["game"])
    if is_run(path):
        target = open_target(Reference(path))
        table = to_document(open_run(path).config)["game"]
        source = Profile(target.game, target.strategy)
        return OpenedPlayer(Contender(name, manner.spec(source), Profile(target.game, target.strategy)), table)
    program = find_program(base_name, search_directories)
    if not programs:
        kind = "neither a policy nor a run" if program is None else "a program, which names no game"
        raise ValueError(f"{base_name} is {kind}: give the directory of a policy or a run")
    if program is None:
        raise ValueError(f"{base_name} is neither a policy, nor a run, nor one of {known_programs(base_name)}")
    if manner != AS_WRITTEN:
        raise ValueError(
            f"{base_name} is a program, which plays as it does: purify, threshold and resolve are for policies and runs"
        )
    return OpenedPlayer(Contender(name, ProgramSpec(program)), None)


def table_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of players for hand files: last parts of paths, "." for ":", equal ones numbered."""
    return distinct_names([Path(name).name.replace(":", ".") for name in names])


def distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, with numbers from 1 behind those that occur more than once."""
    return tuple(
        name if names.count(name) == 1 else f"{name}-{names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    )


def holdem_of(table: Mapping[str, Any] | None) -> HoldemGame | None:
    """Return the no-limit hold'em game of a configuration's `[game]` table; None for another game."""
    if table is None or table.get("name") != "holdem":
        return None
    game = config_from({"game": dict(table)}, "the policy").game
    assert isinstance(game, HoldemGame)
    return game
