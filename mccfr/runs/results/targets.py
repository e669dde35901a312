"""Opens a strategy and its game from the path of a run, an exported policy or exported networks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from mccfr.games.game import Game
from mccfr.policy import Behaviour, Policy, Profile, is_policy
from mccfr.policy.export.networks import is_networks, read_networks
from mccfr.runs.directory.run import Run, is_run, open_run
from mccfr.runs.results.average_strategies import checkpoint_average, checkpoint_networks
from mccfr.runs.results.checkpoints import read_checkpoint
from mccfr.solvers.deep.network_strategy import Networks, is_unlisted
from mccfr.tables.strategy import Strategy, pure_strategy, uniform_strategy
from storage.checkpoint import Checkpoint, is_checkpoint

UNIFORM = "uniform"
"""Name of the default opponent."""
PLAIN_STRATEGIES: Mapping[str, Callable[[Game], Strategy]] = {
    UNIFORM: uniform_strategy,
    "always-call": partial(pure_strategy, action="c"),
    "always-fold": partial(pure_strategy, action="f"),
}
"""Strategies with a name that exist in every game."""


@dataclass(frozen=True)
class Reference:
    """Reference to a strategy, as a user gives it: a path, and a run's checkpoint and average.

    path         of a run, an exported policy or exported networks. For an opponent also the name of a plain strategy,
                 such as "uniform"
    number       number of a run's checkpoint; None: the newest
    abstraction  present path of a run's card abstraction; None: it was not moved
    average      name of a run's average strategy, for algorithms with several; None: the first
    """

    path: Path
    number: int | None = None
    abstraction: Path | None = None
    average: str | None = None

    def check_exported(self) -> None:
        """Raise `ValueError` if a field other than `path` is set: an export has one strategy only."""
        if self.average is not None:
            raise ValueError(f"{self.path} is no run, so it has one strategy only: leave --average out")
        if self.number is not None:
            raise ValueError(f"{self.path} is no run but was exported from one checkpoint: leave --checkpoint out")
        if self.abstraction is not None:
            raise ValueError(f"{self.path} is no run, and a policy has its own bucket tables: leave --abstraction out")


@dataclass(frozen=True)
class Target:
    """Strategy opened for an evaluation or report, with its game and the counts of its training.

    counts       {"nodes_touched", "iterations", "checkpoint": number}, each None if unknown
    abstraction  {street: content hash} of a run's bucket tables, to recognise equal ones; None: an export, or a run
                 without abstraction
    """

    game: Game
    strategy: Strategy
    counts: dict[str, Any]
    abstraction: Mapping[str, str] | None = None


def open_target(target: Reference, *, on_deals: bool = False) -> Target:
    """Open the strategy of a run's checkpoint, of a policy, or of exported networks.

    on_deals  for networks of a game with too many infosets for a table of probabilities. True: return a strategy that
              computes them for sampled deals only. False: raise `ValueError`

    Raises `ValueError` if the path is none of these, and for an abstraction other than the run's. Also if a checkpoint,
    an average or an abstraction is given for an export.
    """
    if is_run(target.path):
        return _open_run_target(open_run(target.path, target.abstraction), target, on_deals)
    if target.average is not None or is_policy(target.path) or is_networks(target.path):
        target.check_exported()
    if is_policy(target.path):
        policy = Policy.open(target.path)
        return Target(policy.game, policy.strategy(), _exported_counts(policy.meta))
    if is_networks(target.path):
        networks, meta = read_networks(target.path)
        strategy = networks.untabled() if on_deals and is_unlisted(networks.game) else networks.strategy()
        return Target(networks.game, strategy, _exported_counts(meta))
    if is_checkpoint(target.path):
        number = int(target.path.name)
        raise ValueError(f"{target.path} is a checkpoint: give its run's directory and --checkpoint {number}")
    raise ValueError(f"{target.path} is neither a run directory nor an exported policy: give one of these")


def _open_run_target(run: Run, target: Reference, on_deals: bool) -> Target:
    game, built = run.build_game(), run.abstraction()
    on_networks = on_deals and run.algorithm.averages.keeps_networks and is_unlisted(game)

    def read(checkpoint: Checkpoint) -> tuple[Strategy, dict[str, Any]]:
        counts = {key: checkpoint.state[key] for key in ("nodes_touched", "iterations")}
        counts |= {"checkpoint": checkpoint.number}
        if on_networks:
            return checkpoint_networks(game, run.config, checkpoint, target.average).untabled(), counts
        return checkpoint_average(game, run.config, checkpoint, target.average), counts

    strategy, counts = read_checkpoint(run, target.number, read)
    return Target(game, strategy, counts, None if built is None else built.content_hashes())


def _exported_counts(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {key: meta["provenance"].get(key) for key in ("nodes_touched", "iterations", "checkpoint")}


def open_networks(target: Reference) -> Networks | None:
    """Return exported neural networks, or those of a run's checkpoint; None if the path holds none.

    Networks exist only for runs of algorithms that keep their strategy in networks, such as Deep CFR.

    Raises `ValueError` for an abstraction other than the run's, and if a checkpoint, an average or an abstraction is
    given for an export.
    """
    if is_networks(target.path):
        target.check_exported()
        return read_networks(target.path)[0]
    run = open_run(target.path, target.abstraction) if is_run(target.path) else None
    if run is None or not run.algorithm.averages.keeps_networks:
        return None
    return read_checkpoint(run, target.number, partial(checkpoint_networks, run.build_game(), run.config))


def open_source(target: Reference, *, check: bool = True) -> Behaviour:
    """Open a strategy to look up infosets: a policy, networks, or the average of a run's checkpoint.

    check  for a policy. True: compare length and checksum of every file. False: compare only the lengths of the large
           tables, and checksums when a look-up reads them

    Raises `ValueError` if the path holds no strategy, and for an abstraction other than the run's. Also if a
    checkpoint, an average or an abstraction is given for an export.
    """
    if is_policy(target.path):
        target.check_exported()
        return Policy.open(target.path, check=check)
    target_strategy = open_target(target)
    return Profile(target_strategy.game, target_strategy.strategy)


def plain_strategy_target(target: Target, name: str) -> Target:
    """Return `target` with a plain strategy instead of its own, such as "uniform".

    The counts of training (`Target.counts`) are None.

    name  name of the plain strategy, a key of PLAIN_STRATEGIES

    Raises `ValueError` for another name.
    """
    if name not in PLAIN_STRATEGIES:
        raise ValueError(f"strategy = {name!r} is not allowed: it must be one of {', '.join(PLAIN_STRATEGIES)}")
    return replace(target, strategy=PLAIN_STRATEGIES[name](target.game), counts=dict.fromkeys(target.counts))


def opponent(target: Target, reference: Reference) -> Profile:
    """Return the strategy in `reference` as an opponent for `target`, with its game.

    If both are runs on one abstraction, they share one copy of its bucket tables. This function does not check that
    both games are equal; the head-to-head evaluation does so.

    target     strategy to evaluate against the opponent
    reference  its path is of a run, a policy or exported networks, or the name of a plain strategy, such as "uniform"

    Raises `ValueError` if the path is none of these, and for an abstraction other than the run's. Also if a checkpoint,
    an average or an abstraction is given for anything but a run.
    """
    game = target.game
    if str(reference.path) in PLAIN_STRATEGIES:
        if reference != Reference(reference.path):
            raise ValueError(f"{reference.path} is no run: leave --against-checkpoint, -abstraction and -average out")
        return Profile(game, PLAIN_STRATEGIES[str(reference.path)](game))
    other = open_target(reference, on_deals=target.strategy.on_deals is not None)
    share = target.abstraction is not None and target.abstraction == other.abstraction
    if (
        share
        and game.cards.board_cards_by_street is not None
        and game.cards.board_cards_by_street == other.game.cards.board_cards_by_street
    ):
        return Profile(replace(other.game, cards=game.cards), other.strategy)
    return Profile(other.game, other.strategy)
