"""Keeps the samples of a run's last evaluation, to compare the next one on equal deals.

Two strategies measured on the same boards against the same opponent have the same luck. Their difference is therefore
known much more precisely than either value.
"""

import json
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.evaluation.methods import Method
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.directory.run import EVALUATIONS, Run
from storage import durable
from storage.json_files import read_json

LAST_UNITS = "last-evaluation.json"
_SAME = ("method", "value_chips", "against", "units", "seed")
"""Fields of a record that identify the kept samples as its own."""


class PreviousSamples:
    """Samples of each method's last line of evaluations.jsonl, in a file for later sessions.

    A sample depends only on its number, so evaluations of different lengths share their first samples.
    """

    def __init__(self, run: Run) -> None:
        self._run, self._kept = run, dict[str, Any]()

    def gained(self, method: Method, side: Profile, record: dict[str, Any], units: npt.NDArray[np.float64]) -> None:
        """Add to a record the gain since the last evaluation, if that used the same samples.

        units  [U, fields] samples of this evaluation, kept for the next one
        """
        lines = self._run.backwards(EVALUATIONS)
        last = next((line for line in lines if line["method"] == method.name), None)
        before = None if last is None else self._units_of(last, units.shape[1])
        if last is not None and before is not None and all(last[name] == record[name] for name in ("against", "seed")):
            both = min(len(units), len(before))
            gained = method.gained(side, units[:both], before[:both])
            record |= gained | {"gain_from_nodes": last["nodes_touched"]}
        self._kept = {name: record[name] for name in _SAME} | {"found": units.tolist()}
        with suppress(OSError):  # without the file, a session reports one difference less
            durable.replace_file(self._run.path(LAST_UNITS), json.dumps(self._kept).encode())

    def _units_of(self, last: dict[str, Any], fields: int) -> npt.NDArray[np.float64] | None:
        """Return the samples of the last line; None if others are kept, as after a kill, or none."""
        if not self._kept:
            with suppress(OSError, ValueError):
                self._kept = read_json(self._run.path(LAST_UNITS))
        if not isinstance(self._kept, dict) or any(self._kept.get(name) != last.get(name) for name in _SAME):
            return None
        try:
            found = np.array(self._kept.get("found"), np.float64)
        except (TypeError, ValueError):
            return None
        return found if found.shape == (last["units"], fields) and np.isfinite(found).all() else None
