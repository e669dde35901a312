"""Errors that end training, each with one sentence on the lost work and how to continue."""

from collections.abc import Mapping

from mccfr.common.signals import EXIT_RESUMABLE
from mccfr.runs.directory.run import Run
from mccfr.runs.events import Totals
from storage.durable import error_text
from storage.run_lock import LostDirectoryError

Saved = tuple[int, Totals] | None
"""Number and counts of the newest checkpoint."""


class AbandonedError(RuntimeError):
    """A second signal has ended training at once; the exit status is `exit_status`."""

    exit_status = EXIT_RESUMABLE


def sentence_of(error: BaseException) -> str:
    """Return the message of an error on one line, for the journal; for system errors with the path."""
    return " ".join((error_text(error) or type(error).__name__).split())


def _missing(totals: Totals, saved: Saved) -> str:
    """Return a text such as "5,000 nodes trained since checkpoint 3", for lost training.

    totals  counts of the run now
    saved   (number, counts) of the newest checkpoint; None: there is none
    """
    nodes = totals.nodes - (saved[1].nodes if saved else 0)
    return f"{nodes:,} nodes trained " + (f"since checkpoint {saved[0]}" if saved else "so far, without a checkpoint,")


def _go_on(run: Run) -> str:
    return f"continue with: mccfr resume {run.directory}"


def abandoned(error: AbandonedError, run: Run, totals: Totals, saved: Saved) -> AbandonedError:
    """Return an `AbandonedError` with the text of `error`, the number of nodes lost, and how to continue.

    error   raised at a second signal
    totals  counts of the run now
    saved   (number, counts) of the newest checkpoint; None: there is none
    """
    return AbandonedError(f"{error}: the session ended at once, and {_missing(totals, saved)} are lost; {_go_on(run)}")


def without_directory(error: LostDirectoryError, totals: Totals, saved: Saved) -> RuntimeError:
    """Return a `RuntimeError` for a removed run directory, or a removed or replaced lock file.

    totals  counts of the run now
    saved   (number, counts) of the newest checkpoint; None: there is none
    """
    return RuntimeError(f"{error}; {_missing(totals, saved)} are lost")


def interrupted(error: OSError, run: Run, totals: Totals, saved: Saved) -> RuntimeError:
    """Return a `RuntimeError` for an `OSError` that ended training.

    Its message is the error's text, the nodes lost, and how to continue.

    totals  counts of the run now
    saved   (number, counts) of the newest checkpoint; None: there is none
    """
    return RuntimeError(
        f"{error_text(error)}: training has ended, and {_missing(totals, saved)} are lost; {_go_on(run)}"
    )


def unsaved(failure: str | None, run: Run, totals: Totals, saved: Saved) -> RuntimeError:
    """Return a `RuntimeError` for training whose last checkpoint could not be written.

    failure  why the last attempt failed
    totals   counts of the run now
    saved    (number, counts) of the newest checkpoint; None: there is none
    """
    return RuntimeError(
        f"the last checkpoint could not be written: {failure}; {_missing(totals, saved)} are lost, as live tables do "
        f"not outlive their process; make room and {_go_on(run)}"
    )


def lost(losses: Mapping[int, str], run: Run, checkpoint: int | None) -> RuntimeError:
    """Return a `RuntimeError` for workers that died, or were ended because they did not answer.

    losses      {index of the worker: sentence on its loss}
    checkpoint  number of the checkpoint written after the loss, with all training but the lost worker's last
                batch; None: the tables are unusable, so training since the last checkpoint is lost
    """
    what = (
        "what was trained since the last checkpoint is dropped"
        if checkpoint is None
        else f"checkpoint {checkpoint} holds what was trained, but for the lost worker's last batch"
    )
    return RuntimeError(f"{'; '.join(losses.values())}: the run is stopped, and {what}; {_go_on(run)}")
