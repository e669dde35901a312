"""From a run's checkpoint, or an exported policy, to an evaluation or an export."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.config import to_document
from mccfr.evaluation.record import evaluation_record
from mccfr.export import export
from mccfr.games.game import Game
from mccfr.policy import Policy, is_policy
from mccfr.strategy import average_strategy
from mccfr.training.rundir import CHECKPOINTS, Run, is_run, open_run
from mccfr.training.solver import schedule_of
from storage.checkpoint import Checkpoint, checkpoint_path, is_checkpoint, list_checkpoints, open_checkpoint


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
    checkpoint = open_checkpoint(checkpoint_path(root, numbers[-1] if number is None else number))
    if checkpoint.identity != run.identity:
        raise ValueError(f"{checkpoint.path} belongs to the run {checkpoint.identity}, and this is {run.identity}")
    return checkpoint


def read_tables(checkpoint: Checkpoint, kind: str = "") -> dict[str, npt.NDArray[np.generic]]:
    """A checkpoint's tables by name (of one kind: "strategy_sum"); every byte read is checked."""
    return {spec.name: checkpoint.read(spec.name) for spec in checkpoint.specs if spec.name.startswith(kind)}


def evaluate_target(target: Path, method: str, number: int | None) -> dict[str, Any]:
    """The evaluation record of a run's checkpoint or of a policy; `ValueError` where `target` is neither."""
    if is_run(target):
        run = open_run(target)
        checkpoint = find_checkpoint(run, number)
        record = evaluation_record(run.build_game(), read_tables(checkpoint, "strategy_sum/"), method)
        state = checkpoint.state
        counts = {"nodes_touched": state["nodes_touched"], "iterations": state["iterations"]}
        return record | counts | {"checkpoint": checkpoint.number}
    if is_policy(target):
        policy = Policy.open(target)
        origin = policy.meta["provenance"]
        counts = {key: origin.get(key) for key in ("nodes_touched", "iterations", "checkpoint")}
        return evaluation_record(policy.game, policy.strategy(), method) | counts
    if is_checkpoint(target):
        raise ValueError(f"{target} is a checkpoint: give its run's directory and --checkpoint {int(target.name)}")
    raise ValueError(f"{target} is neither a run directory nor an exported policy")


def export_run(run: Run, game: Game, out: Path, form: str, quantise: str, number: int | None) -> Path:
    """Export the average strategy of a run's checkpoint to `out`; returns what was written."""
    checkpoint = find_checkpoint(run, number)
    tables = read_tables(checkpoint, "" if form in ("zarr", "hdf5") else "strategy_sum")
    discount = schedule_of(run.config.solver).at(checkpoint.state["nodes_touched"])
    provenance = {
        "run_identity": run.manifest["identity"],
        "checkpoint": checkpoint.number,
        "checkpoint_manifest": checkpoint.content_hash,
        "nodes_touched": checkpoint.state["nodes_touched"],
        "iterations": checkpoint.state["iterations"],
    }
    export(
        game,
        to_document(run.config)["game"],
        average_strategy(game, tables, discount),
        tables,
        out,
        form,
        quantise,
        provenance,
    )
    return out
