"""From a run's checkpoint, or an exported policy, to an evaluation or an export."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from mccfr.config.file import to_document
from mccfr.evaluation.kinds import HeadToHead
from mccfr.evaluation.methods import Method, check_method, load_method, measure
from mccfr.evaluation.side import Side
from mccfr.games.game import Game
from mccfr.policy import Policy, PolicySource, StrategySource, is_policy
from mccfr.policy.export import PROVENANCE, RAW, export
from mccfr.policy.export.networks import is_networks, networks_provenance, read_networks, write_networks
from mccfr.policy.replacing import RUN_ID, replaceable
from mccfr.runs.directory.run import CHECKPOINTS, EVALUATIONS, OWN_CODE, Run, is_run, open_run
from mccfr.runs.directory.state import state_problem
from mccfr.runs.phases import naming_phases, naming_steps
from mccfr.runs.reporter import EVALUATING, Reporter, Silent
from mccfr.runs.results.averages import checkpoint_networks, named_average, stored_average
from mccfr.runs.results.export_cost import export_cost
from mccfr.runs.results.export_values import policy_values
from mccfr.solvers.deep.asked import Asked, OnDeals, is_unlisted
from mccfr.tables.layout import TableSet
from mccfr.tables.simplified import simplified
from mccfr.tables.strategy import Strategy, pure_strategy, uniform_strategy
from storage.blocks import open_whole
from storage.checkpoint import Checkpoint, checkpoint_path, is_checkpoint, list_checkpoints
from storage.outputs import check_output

NETWORKS = "networks"
"""The export format of networks as they are."""
UNIFORM = "uniform"
"""Whom a strategy meets unless somebody is named."""
PLAIN_STRATEGIES: Mapping[str, Callable[[Game], Strategy]] = {
    UNIFORM: uniform_strategy,
    "always-call": partial(pure_strategy, action="c"),
    "always-fold": partial(pure_strategy, action="f"),
}
"""Strategies that are known by name and the same in every game."""


def find_checkpoint(run: Run, number: int | None) -> Checkpoint:
    """Open a run's checkpoint, the newest without a number; `ValueError` where there is no such checkpoint."""
    root = run.path(CHECKPOINTS)
    numbers = list_checkpoints(root)
    if not numbers:
        raise ValueError(
            f"{run.directory} has no checkpoint yet: a run gets one now and then, and whenever it is stopped"
        )
    if number is not None and number not in numbers:
        raise ValueError(f"{run.directory} has no checkpoint {number}; it has {', '.join(map(str, numbers))}")
    checkpoint = open_whole(checkpoint_path(root, numbers[-1] if number is None else number))
    if checkpoint.identity != run.identity:
        raise ValueError(f"{checkpoint.path} belongs to the run {checkpoint.identity}, and this is {run.identity}")
    if (problem := state_problem(checkpoint.state)) is not None:
        raise ValueError(f"{checkpoint.path}: {problem}")
    return checkpoint


def best_checkpoint(run: Run, method: str) -> int:
    """Number of the checkpoint, of those still there, whose strategy a method found least exploitable.

    By exploitability, or the bound on it.  Where a checkpoint was measured several times its newest figure counts; what
    others won from it head-to-head is a bound too: a method's responder may be no match for a strategy that has
    hardly been trained, where they are.  Raises `ValueError` where none was measured by it.
    """
    found: dict[int, float] = {}
    lost: dict[str, float] = {}
    kept = set(list_checkpoints(run.path(CHECKPOINTS)))
    for line in run.backwards(EVALUATIONS):
        if line["method"] == method and line["checkpoint"] in kept and line.get("exploitability_chips") is not None:
            found.setdefault(line["checkpoint"], line["exploitability_chips"])
        if line.get("against") is not None:
            lost[line["against"]] = max(lost.get(line["against"], 0.0), line["value_chips"])
    if not found:
        raise ValueError(
            f"{run.directory} has no checkpoint that is still there and whose exploitability was measured by {method}: "
            "name it in [evaluation] and keep the checkpoints of its points with keep = true"
        )
    bound = {number: max(value, lost.get(f"checkpoint {number}", value)) for number, value in found.items()}
    return min(bound, key=lambda number: (bound[number], -number))


def read_tables(checkpoint: Checkpoint, kind: str = "") -> TableSet:
    """A checkpoint's tables (of one kind: "strategy_sum"); every byte read is checked."""
    specs = [spec for spec in checkpoint.specs if spec.name.startswith(kind)]
    return TableSet({spec.name: checkpoint.read(spec.name) for spec in specs}, specs)


@dataclass(frozen=True)
class Target:
    """Something that can be evaluated: a strategy in its game, and the counts behind it.

    `abstraction` holds the hashes of the abstraction that a run's bucket tables come from.
    """

    game: Game
    strategy: Strategy
    counts: dict[str, Any]
    abstraction: Mapping[str, str] | None = None


def open_target(
    target: Path,
    number: int | None = None,
    abstraction: Path | None = None,
    average: str | None = None,
    *,
    on_deals: bool = False,
    code: str = OWN_CODE,
) -> Target:
    """A run's checkpoint (the newest without a number), a policy, or exported networks.

    abstraction  where a run's abstraction lies, if not where it was when the run was made
    average      which average strategy of a run, where its algorithm makes several
    code         as `open_run` takes it
    on_deals     where no table holds what networks play, have a strategy that can be asked on deals alone (`OnDeals`)
    Raises `ValueError` where `target` is none of these, for another abstraction than the run's, and for what goes with
    a run alone beside something else.
    """
    if is_run(target):
        run = open_run(target, abstraction, code)
        checkpoint, game, origin = find_checkpoint(run, number), run.build_game(), run.abstraction()
        counts = {key: checkpoint.state[key] for key in ("nodes_touched", "iterations")}
        counts |= {"checkpoint": checkpoint.number}
        hashes = None if origin is None else origin.content_hashes()
        if on_deals and run.algorithm.averages.keeps_networks and is_unlisted(game):
            asked = checkpoint_networks(game, run.config, checkpoint, average)
            return Target(game, OnDeals(asked), counts, hashes)
        if average is not None:
            return Target(game, named_average(game, run.config, checkpoint, average), counts, hashes)
        return Target(game, stored_average(game, run.config, checkpoint), counts, hashes)
    if average is not None:
        raise ValueError(f"{target} is no run, so it has one strategy: leave --average out")
    if is_policy(target):
        _check_alone(target, number, abstraction)
        policy = Policy.open(target)
        origin = policy.meta["provenance"]
        counts = {key: origin.get(key) for key in ("nodes_touched", "iterations", "checkpoint")}
        return Target(policy.game, policy.strategy(), counts)
    if is_networks(target):
        _check_alone(target, number, abstraction)
        asked, meta = read_networks(target)
        counts = {key: meta["provenance"].get(key) for key in ("nodes_touched", "iterations", "checkpoint")}
        listed = not (on_deals and is_unlisted(asked.game))
        return Target(asked.game, asked.strategy() if listed else OnDeals(asked), counts)
    if is_checkpoint(target):
        raise ValueError(f"{target} is a checkpoint: give its run's directory and --checkpoint {int(target.name)}")
    raise ValueError(f"{target} is neither a run directory nor an exported policy")


def open_networks(
    target: Path, number: int | None = None, abstraction: Path | None = None, code: str = OWN_CODE
) -> Asked | None:
    """The networks of a directory or of a run's checkpoint; None where there are none.  As `open_target` otherwise."""
    if is_networks(target):
        _check_alone(target, number, abstraction)
        return read_networks(target)[0]
    run = open_run(target, abstraction, code) if is_run(target) else None
    if run is None or not run.algorithm.averages.keeps_networks:
        return None
    return checkpoint_networks(run.build_game(), run.config, find_checkpoint(run, number))


def _check_alone(target: Path, number: int | None, abstraction: Path | None) -> None:
    """`ValueError` where something exported is asked for a checkpoint, or given an abstraction."""
    if number is not None:
        raise ValueError(f"{target} is no run but was exported from one checkpoint: leave --checkpoint out")
    if abstraction is not None:
        raise ValueError(f"{target} is no run and holds its own bucket tables if any: leave --abstraction out")


def open_source(
    target: Path,
    number: int | None = None,
    abstraction: Path | None = None,
    *,
    check: bool = True,
    code: str = OWN_CODE,
) -> PolicySource:
    """A policy, or the average strategy of a run's checkpoint (the newest without a number), to be asked for infosets.

    abstraction  where a run's abstraction lies, if not where it was when the run was made
    check        as `Policy.open` takes it
    code         as `open_run` takes it
    Raises as `open_target`, and `ValueError` for a number beside a policy.
    """
    if is_policy(target):
        _check_alone(target, number, abstraction)
        return Policy.open(target, check=check)
    found = open_target(target, number, abstraction, code=code)
    return StrategySource(found.game, found.strategy)


def evaluate_target(
    target: Path,
    method: str,
    number: int | None = None,
    *,
    abstraction: Path | None = None,
    against: str = UNIFORM,
    against_number: int | None = None,
    against_abstraction: Path | None = None,
    strategy: str | None = None,
    average: str | None = None,
    against_average: str | None = None,
    reporter: Reporter | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The evaluation record of a run's checkpoint or of a policy.

    abstraction              where a run's abstraction lies now
    against, against_number  head-to-head: a policy, a run (and checkpoint), "uniform" or "always-call"
    against_abstraction      as `abstraction`, of the other run
    strategy                 one of PLAIN_STRATEGIES, which is measured instead in the same game; the record names it
    average, against_average which average strategy of either run; the record names the first
    reporter                 told of phases
    options                  of the method (`mccfr.evaluation.methods.measure`)
    Raises `ValueError` where a target is neither run nor policy, the method is unknown or does not suit the game, an
    opponent is named for one that meets none, or he plays another game; on other buckets he may.  A method
    `module:Class` is looked for in the current directory first.
    """
    with naming_phases(reporter or Silent()) as told:
        told.phase(f"reading {target}")
        meets = method == HeadToHead.name
        found = open_target(target, number, abstraction, average, on_deals=meets)
        named = {} if average is None else {"average": average}
        if strategy is not None:
            found, named = _plain_target(found, strategy), {**named, "strategy": strategy}
        load_method(method, (Path(),))

        def other() -> tuple[Side, str]:
            told.phase(f"reading {against}")
            return opponent(found, against, against_number, against_abstraction, against_average), against

        given = (against, against_number, against_abstraction, against_average) != (UNIFORM, None, None, None)
        return evaluate_found(found, method, other if given else None, reporter=told, **options) | named


def _plain_target(found: Target, name: str) -> Target:
    """A plain strategy in the game of something open; `ValueError` for a name of none."""
    if name not in PLAIN_STRATEGIES:
        raise ValueError(f"strategy = {name!r} is not allowed: it must be one of {', '.join(PLAIN_STRATEGIES)}")
    return replace(found, strategy=PLAIN_STRATEGIES[name](found.game), counts=dict.fromkeys(found.counts))


def evaluate_found(
    found: Target,
    method: str,
    against: Callable[[], tuple[Side, str]] | None = None,
    *,
    reporter: Reporter | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The evaluation record of something open.

    against   makes the strategy that it is played against, and its name; None: uniform play, if the method meets one
    reporter  told of phases
    options   of the method (`mccfr.evaluation.methods.measure`)
    Raises `ValueError` where the method does not suit the game or meets nobody, or the opponent plays another game.
    """
    told, side = reporter or Silent(), Side(found.game, found.strategy)
    other, name = _met(found, check_method(found.game, method), against)
    told.phase(EVALUATING)
    with naming_steps(told):
        return measure(method, side, other, name, **options) | found.counts


def _met(
    found: Target, method: Method, against: Callable[[], tuple[Side, str]] | None
) -> tuple[Side | None, str | None]:
    """The opponent and his name, as `evaluate_found` has them; None for methods that meet none."""
    if method.meets:
        return against() if against is not None else (opponent(found, UNIFORM), UNIFORM)
    if against is not None:
        raise ValueError(f"the method {method.name} meets no opponent: leave --against out, or take head-to-head")
    return None, None


def opponent(
    found: Target,
    name: str,
    number: int | None = None,
    abstraction: Path | None = None,
    average: str | None = None,
) -> Side:
    """A strategy for the game of `found` by name (PLAIN_STRATEGIES), or that of a run or policy in its own.

    Two runs on one abstraction look their buckets up in one copy of its tables.  Raises `ValueError` where the name is
    neither; whether both games are the same is for head-to-head to check.
    """
    game = found.game
    if name in PLAIN_STRATEGIES:
        if not number is abstraction is average is None:
            raise ValueError(f"{name} is no run: leave --against-checkpoint, -abstraction and -average out")
        return Side(game, PLAIN_STRATEGIES[name](game))
    other = open_target(Path(name), number, abstraction, average, on_deals=isinstance(found.strategy, OnDeals))
    if _shares_tables(found, other):
        return Side(replace(other.game, cards=game.cards), other.strategy)
    return Side(other.game, other.strategy)


def _shares_tables(one: Target, other: Target) -> bool:
    """Whether the bucket tables of two runs are the same, for games that deal the same boards."""
    same = one.abstraction is not None and one.abstraction == other.abstraction
    return same and one.game.cards.same_tables(other.game.cards)


def export_run(
    run: Run,
    game: Game,
    out: Path,
    form: str,
    quantise: str,
    number: int | None,
    reporter: Reporter | None = None,
    average: str | None = None,
    *,
    purify: bool = False,
    threshold: float = 0.0,
    cost_boards: int = 0,
    value_boards: int = 0,
    replace: bool = False,
) -> Path:
    """Export the average strategy of a run's checkpoint to `out`; returns what was written.  Tells of phases.

    average            which one, of an algorithm that makes several
    purify, threshold  change it before, as `mccfr.tables.simplified.simplified` does
    cost_boards        of a policy, say what it has lost by all that, measured on so many boards; 0: do not
    value_boards       of a policy, add what buckets win where streets begin, on so many boards; 0: do not
    replace            an export of another run may be replaced, too

    Raises `ValueError` where raw tables are asked for that no strategy was made of, `FileExistsError` where something
    else than an export of this run and format is at `out`, and as what it calls.
    """
    if (purify or threshold) and form in RAW:
        raise ValueError(f"{form} holds the run's tables as they are: purify and threshold change strategies")
    if average is not None and form in RAW:
        raise ValueError(f"{form} holds the run's tables as they are, those of every average: leave --average out")
    if value_boards and form != "policy":
        raise ValueError(f"{form} has no place for values: export a policy")
    if (purify or threshold) and form == NETWORKS:
        raise ValueError("purify and threshold change tables of a strategy: add --tabulate")
    told, run_id = reporter or Silent(), run.run_id
    may = replaceable({**PROVENANCE, NETWORKS: networks_provenance}[form], run_id, replace=replace)
    check_output(out, may)
    checkpoint, abstraction = find_checkpoint(run, number), run.abstraction()
    told.phase(f"reading checkpoint {checkpoint.number}")
    strategy: Strategy | None = None
    if average is not None and form != NETWORKS:
        strategy = named_average(game, run.config, checkpoint, average)
    elif form not in (*RAW, NETWORKS):
        strategy = stored_average(game, run.config, checkpoint)
    tables = read_tables(checkpoint) if form in RAW else TableSet({})
    provenance = {
        RUN_ID: run_id,
        "run_identity": run.manifest["identity"],
        "checkpoint": checkpoint.number,
        "checkpoint_manifest": checkpoint.content_hash,
        "nodes_touched": checkpoint.state["nodes_touched"],
        "iterations": checkpoint.state["iterations"],
    }
    if purify or threshold:
        provenance |= {"purify": purify, "threshold": threshold}
    kept = None if strategy is None else simplified(game, strategy, purify=purify, threshold=threshold)
    values = None
    if value_boards and kept is not None:
        values = policy_values(StrategySource(game, kept), value_boards, told)
    told.phase(f"writing {out}")
    if form == NETWORKS:
        asked = checkpoint_networks(game, run.config, checkpoint, average)
        write_networks(out, asked, to_document(run.config), provenance, may)
        return out
    export(
        game,
        to_document(run.config)["game"],
        kept,
        tables,
        out,
        form,
        quantise,
        provenance,
        abstraction.origin() if abstraction is not None and form == "policy" else None,
        values,
        replaceable=may,
    )
    if cost_boards and form == "policy" and strategy is not None:
        told.message(export_cost(game, strategy, out, cost_boards, told))
    return out
