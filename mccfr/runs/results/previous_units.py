"""What the last evaluation of a run found, unit by unit, kept for the next one.

Two strategies measured on the same boards against the same opponent meet the same luck, so what one has gained over the
other is known far better than what either wins.
"""

import json
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.evaluation.methods import Method
from mccfr.policy.profile import Profile
from mccfr.runs.directory.run import EVALUATIONS, Run
from storage import durable
from storage.json_files import read_json

LAST_UNITS = "last-evaluation.json"
_SAME = ("method", "value_chips", "against", "units", "seed")
"""Fields of a record by which it is known that kept units are its own."""


class LastUnits:
    """The units that a method's last line of evaluations.jsonl tells of; in a file for later sessions.

    A unit is a function of its number, so evaluations of different length are compared by the units that both have.
    """

    def __init__(self, run: Run) -> None:
        self._run, self._kept = run, dict[str, Any]()

    def gained(self, method: Method, side: Profile, record: dict[str, Any], units: npt.NDArray[np.float64]) -> None:
        """Add to a record what was gained since the last evaluation, where it was on the same units.

        units  [U, fields] what was found now, which is kept for the next evaluation
        """
        lines = self._run.backwards(EVALUATIONS)
        last = next((line for line in lines if line["method"] == method.name), None)
        before = None if last is None else self._units_of(last, units.shape[1])
        if last is not None and before is not None and all(last[name] == record[name] for name in ("against", "seed")):
            both = min(len(units), len(before))
            gained = method.gained(side, units[:both], before[:both])
            record |= gained | {"gain_from_nodes": last["nodes_touched"]}
        self._kept = {name: record[name] for name in _SAME} | {"found": units.tolist()}
        with suppress(OSError):  # a session without it tells one difference less
            durable.replace_file(self._run.path(LAST_UNITS), json.dumps(self._kept).encode())

    def _units_of(self, last: dict[str, Any], fields: int) -> npt.NDArray[np.float64] | None:
        """The units of the last line; None where others are kept, as after a kill, or none."""
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
