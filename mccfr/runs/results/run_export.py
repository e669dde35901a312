"""Exports the average strategy or the tables of a run's checkpoint."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mccfr.common.package import VERSION
from mccfr.config.toml_files import to_document
from mccfr.evaluation.hand_values import root_values
from mccfr.games.game import Game
from mccfr.policy import Behaviour, Profile
from mccfr.policy.export import BY_HAND, PROVENANCE, RAW, export
from mccfr.policy.export.networks import networks_provenance, write_networks
from mccfr.policy.origin import plain_table
from mccfr.policy.overwrite import RUN_ID, replaceable
from mccfr.policy.policy_values import PolicyValues, StreetValues
from mccfr.runs.directory.run import EVALUATIONS, Run, is_locked
from mccfr.runs.reporter import Reporter, Silent
from mccfr.runs.results.average_strategies import checkpoint_average, checkpoint_networks
from mccfr.runs.results.checkpoints import read_checkpoint, read_tables
from mccfr.solvers.deep.network_strategy import Networks
from mccfr.solvers.locked_tables import with_locked_rows
from mccfr.tables.purification import simplified
from mccfr.tables.strategy import Strategy
from mccfr.tables.table_layout import TableSet
from storage.atomic_outputs import check_output
from storage.checkpoint import Checkpoint

NETWORKS = "networks"
"""The export format of networks as they are."""
_FIGURES = (
    "method",
    "bound",
    "value_chips",
    "gains_chips",
    "exploitability_chips",
    "exploitability_mbb",
    "ci95_chips",
    "ci95_mbb",
    "against",
    "boards",
    "hands",
)
"""Fields of an evaluation that an export states."""
ORIGIN = {**PROVENANCE, NETWORKS: networks_provenance}


@dataclass(frozen=True)
class ExportOptions:
    """Options of `export_run`; a prefix such as "policy:" names the formats that use an option.

    format             "policy", "csv", "parquet", "openspiel", "zarr", "hdf5", or "networks"
    quantise           policy: integers in which probabilities are stored, "uint8" or "uint16"
    number             number of the checkpoint; None: the newest
    average            name of an average strategy, for algorithms with several; None: the first
    purify             play only the most probable action of each infoset
    threshold          remove actions of lower probability, and rescale the others; 0: do not
    value_boards       policy: number of boards on which to compute values of buckets to add (`policy_values`); 0: none
    board              csv, parquet: write a row for each hand on this board ("": before the flop); None: for each
                       bucket
    license            license of the data, which the export states; None: not stated
    replace            allow to replace the export of another run
    """

    format: str = "policy"
    quantise: str = "uint16"
    number: int | None = None
    average: str | None = None
    purify: bool = False
    threshold: float = 0.0
    value_boards: int = 0
    board: str | None = None
    replace: bool = False
    license: str | None = None

    @property
    def is_simplified(self) -> bool:
        """True if the strategy is purified or thresholded."""
        return self.purify or bool(self.threshold)

    def problem(self) -> str | None:
        """Return a sentence on why the options do not fit together, or None."""
        if self.format not in ORIGIN:
            return f"format = {self.format!r} is not one of {', '.join(ORIGIN)}"
        if self.is_simplified and self.format in RAW:
            return f"{self.format} holds the run's tables as they are: purify and threshold change strategies"
        if self.average is not None and self.format in RAW:
            return f"{self.format} holds the run's tables as they are, those of every average: leave --average out"
        if self.value_boards and self.format != "policy":
            return f"{self.format} has no place for values: export a policy"
        if self.board is not None and self.format not in BY_HAND:
            return f"{self.format} has no rows that could be of hands: choose {' or '.join(BY_HAND)}"
        if self.is_simplified and self.format == NETWORKS:
            return "purify and threshold change tables of a strategy: add --tabulate"
        return None


def export_run(
    run: Run,
    game: Game,
    out: Path,
    options: ExportOptions = ExportOptions(),
    reporter: Reporter | None = None,
) -> Path:
    """Export a run's checkpoint to `out`, by default the newest as a policy; return `out`.

    reporter  receives the names of the phases, such as reading and writing; None: they are not reported

    Raises `ValueError` for options that do not fit together, and if the checkpoint does not exist. Raises
    `FileExistsError` if `out` exists, unless it is empty or an export of this format. An export of another run may be
    replaced only with `options.replace`. Raises `DamagedError` if the checkpoint is damaged.
    """
    if (problem := options.problem()) is not None:
        raise ValueError(problem)
    reporter, form = reporter or Silent(), options.format
    may = replaceable(ORIGIN[form], run.run_id, replace=options.replace)
    check_output(out, may)

    def read(checkpoint: Checkpoint) -> tuple[Strategy | Networks | TableSet, dict[str, Any]]:
        reporter.phase(f"reading checkpoint {checkpoint.number}")
        return _exported(run, game, checkpoint, options), _provenance(run, checkpoint, options)

    found, provenance = read_checkpoint(run, options.number, read)
    strategy, tables, abstraction, values = None, TableSet({}), None, None
    if isinstance(found, Strategy):
        simple = simplified(game, found, purify=options.purify, threshold=options.threshold)
        strategy = with_locked_rows(game, simple)
        if options.value_boards:
            values = policy_values(Profile(game, strategy), options.value_boards, reporter)
        if form == "policy" and (built := run.abstraction()) is not None:
            abstraction = built.origin()
    elif isinstance(found, TableSet):
        tables = found
    reporter.phase(f"writing {out}")
    document = to_document(run.config)
    if isinstance(found, Networks):
        write_networks(out, found, document, provenance, may)
        return out
    export(
        game,
        document["game"],
        strategy,
        tables,
        out,
        form,
        options.quantise,
        provenance,
        abstraction,
        values,
        board=options.board,
        replaceable=may,
    )
    return out


def _exported(run: Run, game: Game, checkpoint: Checkpoint, options: ExportOptions) -> Strategy | Networks | TableSet:
    """Return the content of an export in `options.format`, from a checkpoint.

    It is the networks for "networks", the tables for "zarr" and "hdf5", otherwise the average strategy.
    """
    if options.format == NETWORKS:
        return checkpoint_networks(game, run.config, checkpoint, options.average)
    if options.format in RAW:
        return read_tables(checkpoint)
    return checkpoint_average(game, run.config, checkpoint, options.average)


def _provenance(run: Run, checkpoint: Checkpoint, options: ExportOptions) -> dict[str, Any]:
    """Return {field: value} of an export about its origin: program, run, checkpoint, evaluations.

    Two of these fields are:

    share_of_run  nodes, iterations or seconds trained over the run's limit of them, at most 1; the largest of these
                  shares; None: no limit
    running       True if the run was short of all its limits, and a process worked on it; False without a limit
    """
    changed = {"purify": options.purify, "threshold": options.threshold} if options.is_simplified else {}
    state, document = checkpoint.state, to_document(run.config)
    done = {"nodes": "nodes_touched", "iterations": "iterations", "seconds": "training_seconds"}
    limits = {key: document["run"][key] for key in done if document["run"][key] is not None}
    share = max((min(1.0, state[done[key]] / limit) if limit else 1.0 for key, limit in limits.items()), default=None)
    return {
        "program": f"mccfr {VERSION}",
        "license": options.license,
        "recipe": {"solver": plain_table(document["solver"]), "run": limits},
        "training_seconds": state["training_seconds"],
        "share_of_run": share,
        "running": share is not None and share < 1 and is_locked(run),
        "evaluations": _evaluations(run, checkpoint),
        RUN_ID: run.run_id,
        "run_identity": run.manifest["identity"],
        "checkpoint": checkpoint.number,
        "checkpoint_manifest": checkpoint.content_hash,
        "nodes_touched": checkpoint.state["nodes_touched"],
        "iterations": checkpoint.state["iterations"],
        **changed,
    }


def _evaluations(run: Run, checkpoint: Checkpoint) -> list[dict[str, Any]]:
    """Return for each evaluation method {name: figure} of its last evaluation at this checkpoint.

    Evaluations at a checkpoint have its counts of nodes touched and iterations. Figures that are None are left out.
    """
    found: dict[str, dict[str, Any]] = {}
    for line in run.read(EVALUATIONS):
        if all(line[key] == checkpoint.state[key] for key in ("nodes_touched", "iterations")):
            found[line["method"]] = {key: line[key] for key in _FIGURES if line.get(key) is not None}
    return list(found.values())


def policy_values(source: Behaviour, boards: int, reporter: Reporter) -> PolicyValues:
    """Return the mean chips won with each bucket at the first decisions of each street.

    Both players use the strategy `source` to the end of the hand. The policy format stores these values
    (`mccfr.policy.policy_values`).

    boards    number of sampled boards, if cards are dealt from the whole deck; elsewhere all boards are enumerated
    reporter  receives the progress

    Raises `ValueError` for three and more players, and for games that deal cards as chance nodes of the tree.
    """

    def report(done: int, total: int) -> None:
        reporter.phase(f"computing values, board {done:,} of {total:,}", done / total)

    found, exact = root_values(source, boards, progress=report)
    return PolicyValues([StreetValues(*one) for one in found], None if exact else boards)
