"""Opens a run's checkpoints, and checks the fields that each has besides tables."""

from typing import Annotated, Any

import msgspec

from mccfr.runs.directory.run import CHECKPOINTS, Run
from storage.block_tables import open_with_blocks
from storage.checkpoint import Checkpoint, checkpoint_path, identity_problem

_Count = Annotated[int, msgspec.Meta(ge=0)]
_RNG_WORDS = 4


class WorkerFields(msgspec.Struct, frozen=True):
    """Training done by one worker, and its random state; in a run with strata, on one stratum.

    A stratum is a group of second-street boards with buckets of its own, trained by one worker at a time.

    nodes  nodes touched
    rng    four 64-bit words of the random number generator, or none before its start
    """

    iterations: _Count
    nodes: _Count
    rng: list[_Count]
    due: _Count = 0  # of a stratum: part of an iteration left by rounding, in units of 1/(sum of all strata's shares)


class BlockScheduleFields(msgspec.Struct, frozen=True):
    """Progress of an out-of-core run, whose tables need not fit in memory together.

    The run divides the second-street boards into blocks, and trains these in turns. Tables of other blocks may be on
    disk.

    ended        number of turns that have ended
    cycle_nodes  nodes touched when the present cycle through all blocks began
    """

    ended: _Count
    cycle_nodes: _Count


class StateFields(msgspec.Struct, frozen=True):
    """Fields of `state.json`, the part of a run's checkpoint besides the tables.

    nodes_touched, iterations, training_seconds  totals of the run
    workers  one item for each worker; in a run with strata (groups of boards), for each stratum
    period   number, from 1, of the present period (a fixed number of nodes), by which training may discount
    kept     True: the checkpoint is kept permanently
    """

    nodes_touched: _Count
    iterations: _Count
    training_seconds: float
    workers: list[WorkerFields]
    period: _Count
    kept: bool = False
    measured: bool = False  # its strategy was due for evaluation
    turns: BlockScheduleFields | None = None


def check_belongs_to_run(run: Run, checkpoint: Checkpoint) -> Checkpoint:
    """Check that an open checkpoint belongs to a run and has a valid state, and return it.

    Raises `ValueError` if it belongs to another run, or its state is invalid.
    """
    problem = identity_problem(checkpoint, run.identity) or state_problem(checkpoint.state)
    if problem is not None:
        raise ValueError(f"{checkpoint.path}: {problem}")
    return checkpoint


def open_run_checkpoint(run: Run, number: int) -> Checkpoint:
    """Open a checkpoint of a run; the caller holds the run's lock.

    A run out of core or on several machines stores parts of its tables, called blocks, beside the checkpoints. They can
    be read through the checkpoint too.

    Raises `FileNotFoundError` if it does not exist, `DamagedError` if its manifest or state is damaged, and
    `UnreadableError` if the system cannot read them. Raises `ValueError` if it belongs to another run or its state is
    invalid.
    """
    return check_belongs_to_run(run, open_with_blocks(checkpoint_path(run.path(CHECKPOINTS), number)))


def state_problem(state: dict[str, Any]) -> str | None:
    """Return a sentence on the first invalid field of a checkpoint's state; None if all are valid."""
    try:
        fields = msgspec.convert(state, StateFields)
    except msgspec.ValidationError as error:
        return f"state.json is not that of a run: {str(error).replace('`', '')}"
    if fields.training_seconds < 0:
        return "state.json states a time below 0"
    for number, worker in enumerate(fields.workers):
        if len(worker.rng) not in (0, _RNG_WORDS) or any(word >= 2**64 for word in worker.rng):
            return f"state.json: the random words of worker {number} are not {_RNG_WORDS} of 64 bits"
        if worker.iterations >= 2**63 or worker.nodes >= 2**63:
            return f"state.json: the counters of worker {number} are above 2**63 - 1"
    return None
