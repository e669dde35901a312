"""How a session ends that does not end well: errors of one sentence that say what is lost and how to go on."""

from collections.abc import Mapping

from mccfr.runs.directory.run import Run
from mccfr.runs.events import Totals
from mccfr.signals import EXIT_RESUMABLE
from storage.durable import error_text
from storage.lock import LostDirectoryError

Saved = tuple[int, Totals] | None
"""Number and counts of the newest checkpoint."""


class AbandonedError(RuntimeError):
    """A second signal has ended the session at once; the process ends with `exit_status`, as the run goes on."""

    exit_status = EXIT_RESUMABLE


def sentence_of(error: BaseException) -> str:
    """An error in one line, for the journal; of the system's with their paths."""
    return " ".join((error_text(error) or type(error).__name__).split())


def _missing(totals: Totals, saved: Saved) -> str:
    """What lies beyond the newest checkpoint."""
    nodes = totals.nodes - (saved[1].nodes if saved else 0)
    return f"{nodes:,} nodes trained " + (f"since checkpoint {saved[0]}" if saved else "so far, without a checkpoint,")


def _go_on(run: Run) -> str:
    return f"continue with: mccfr resume {run.directory}"


def abandoned(error: AbandonedError, run: Run, totals: Totals, saved: Saved) -> AbandonedError:
    """The error with what was lost: `totals` are the counts when the workers were ended."""
    return AbandonedError(f"{error}: the session ended at once, and {_missing(totals, saved)} are lost; {_go_on(run)}")


def without_directory(error: LostDirectoryError, totals: Totals, saved: Saved) -> RuntimeError:
    """The run directory was removed, or is no longer this session's."""
    return RuntimeError(f"{error}; {_missing(totals, saved)} are lost")


def interrupted(error: OSError, run: Run, totals: Totals, saved: Saved) -> RuntimeError:
    """The system has failed where training cannot do without it."""
    what = f"training has ended, and {_missing(totals, saved)} are lost"
    return RuntimeError(f"{error_text(error)}: {what}; {_go_on(run)}")


def unsaved(failure: str | None, run: Run, totals: Totals, saved: Saved) -> RuntimeError:
    """The last checkpoint could not be written."""
    return RuntimeError(
        f"the last checkpoint could not be written: {failure}; {_missing(totals, saved)} are lost, as live tables do "
        f"not outlive their process; make room and {_go_on(run)}"
    )


def lost(losses: Mapping[int, str], run: Run, checkpoint: int | None) -> RuntimeError:
    """Workers are lost; `checkpoint` was made of what the others have, None: the tables are of no use."""
    what = (
        "what was trained since the last checkpoint is dropped"
        if checkpoint is None
        else f"checkpoint {checkpoint} holds what was trained, but for the lost worker's last batch"
    )
    return RuntimeError(f"{'; '.join(losses.values())}: the run is stopped, and {what}; {_go_on(run)}")
