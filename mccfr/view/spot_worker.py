"""Child process that solves one spot for the page, as `mccfr spot` does; it reports progress as JSON.

A spot is a game of two hold'em players that begins on a given board, with ranges, pot and stacks. The first line of
standard input is the request. When standard input closes, training stops and keeps its result so far as a checkpoint.
Messages on standard output are one JSON object a line; `mccfr.view.spot_requests` reads them.
"""

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mccfr.runs.reporter import SessionProgress, duration_text
from mccfr.runs.session.spot_run import start_typed_spot
from mccfr.runs.session.start import Terms
from mccfr.runs.session.train_and_export import train_and_export
from storage.free_space import bytes_text

_AS_A_RULE = 200
"""Usual number of iterations until the exploitability is 0.3 % of the pot."""
Tell = Callable[[Mapping[str, Any]], None]


class _Telling:
    """Passes the solver's messages, phases of work and evaluations to a function, as JSON objects."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def message(self, text: str) -> None:
        """Send a sentence for the user, such as a warning, as the field `said`."""
        self._tell({"said": text})

    def phase(self, text: str, share: float | None = None) -> None:
        """Send the name of the work that begins, such as "training"; `share`, the part done, is not sent."""
        self._tell({"phase": text})

    def progress(self, progress: SessionProgress) -> None:
        """Receive numbers of nodes and iterations and send nothing: evaluations report the iterations."""

    def evaluation(self, record: Mapping[str, Any]) -> None:
        """Send the fields `iterations` and `exploitability_chips` of an evaluation's `record`."""
        self._tell({"iterations": record["iterations"], "exploitability_chips": record["exploitability_chips"]})


def solve_spot(request: Mapping[str, Any], tell: Tell) -> None:
    """Solve a spot and send its progress as JSON objects to `tell`.

    request  values of the page's spot form (`spot_requests.spot_request`). Also `policy` and `line` of a spot that
             begins after a strategy's line, otherwise None
    tell     function that receives each object. Before training it gets `run` (directory), `pot_chips`, and `plan`
             with memory and expected time. At the end it gets `answer`, the fields of `mccfr spot --json`, and
             `stopped`, True if a signal ended the training

    Raises `ValueError` for an invalid field, or if the solve was stopped before training.
    """
    report = _Telling(tell)
    policy = None if request.get("policy") is None else Path(request["policy"])
    started = start_typed_spot({**request, "policy": policy}, Terms(report))
    plan: dict[str, Any] = {
        "infosets": int(started.game.infosets.sum()),
        "memory_bytes": started.memory_bytes,
        "seconds_an_iteration": started.seconds_an_iteration,
    }
    time = duration_text(max(1.0, _AS_A_RULE * started.seconds_an_iteration))
    text = (
        f"{plan['infosets']:,} decisions with a hand each, {bytes_text(started.memory_bytes)} of memory; about {time}"
    )
    plan["text"] = f"{text} for {_AS_A_RULE} iterations, as it takes as a rule"
    tell({"run": str(started.run.directory), "pot_chips": started.game.pot_chips, "plan": plan})
    outcome, _ = train_and_export(started.run, started.game, report)
    if outcome.checkpoint is None:
        raise ValueError("stopped before anything was trained")
    tell({"answer": started.answer(outcome.directory), "stopped": outcome.signal is not None})


def main() -> None:
    """Read the request from standard input, solve its spot, and write messages to standard output."""
    out, request = os.fdopen(os.dup(1), "w"), json.loads(sys.stdin.readline())
    os.dup2(2, 1)  # standard output is for JSON only

    def tell(value: Mapping[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(value), file=out, flush=True)

    def heed() -> None:
        sys.stdin.read()  # until the server closes it or ends
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=heed, daemon=True).start()
    try:
        solve_spot(request, tell)
    except (ValueError, OSError, MemoryError, RuntimeError) as error:
        sentence = " ".join(str(error).split()).removesuffix("; or use --force")
        tell({"problem": sentence or "memory is full"})


if __name__ == "__main__":
    main()
