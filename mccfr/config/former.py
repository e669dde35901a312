"""Keys that tables have no longer: what was written when they had one is read, where it says what is the rule now."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from mccfr.config.limits import shown
from mccfr.config.solvers import LAST_TRAINED

Table = Mapping[str, Any]


def _is_told(run: Table) -> bool:
    """Of runs by threads, which go on: they hear once what trains them now."""
    if run["pool"] == "threads":
        text = "run.pool = 'threads' is passed over: processes train the same bits, as fast (leave the key out)"
        logging.getLogger("mccfr.config").warning("mccfr: %s", text)
    return True


GONE_KEYS: Mapping[tuple[str, str | None], Mapping[str, tuple[Callable[[Table], bool], str]]] = {
    ("game", "leduc"): {"ante": (lambda game: game["ante"] == 1, "1")},
    ("game", "akq"): {
        "pot": (lambda game: game["pot"] == 2, "2"),
        "bet": (lambda game: game["bet"] == 1, "1"),
    },
    ("solver", "cfr"): {"schedule": (lambda solver: False, "a variant's: 'hs-dcfr' has 15, 'hs-dcfr-30' has 30")},
    ("run", None): {"pool": (_is_told, "'processes'")},
    ("tables", None): {
        # Of "preflop", with "snapshot_nodes", `mccfr.config.tables.PREFLOP_SUMS` is the table.
        "strategy_sums": (lambda tables: tables["strategy_sums"] == "all", "'all'"),
        "snapshot_nodes": (lambda tables: False, "for tables.strategy_sums = 'preflop' alone"),
    },
    ("cluster", None): {
        "copies": (lambda cluster: cluster["copies"] == 1 or "directory" in cluster, "2 with cluster.directory, else 1")
    },
}
"""By table, and by what chooses its struct where something does: a key, whether it says what holds now, and that."""


def without_former(name: str, chosen: str | None, table: Table) -> dict[str, Any]:
    """A table without keys that it has no longer; `ValueError` of one sentence where one means something else."""
    former = GONE_KEYS.get((name, chosen), {})
    for key in sorted(former.keys() & table.keys()):
        holds, now = former[key]
        if not holds(table):
            raise ValueError(
                f"{name}.{key} = {shown(table[key])}: the key went after mccfr {LAST_TRAINED}, and it is {now} now: "
                "leave it out, or use that version"
            )
    return {key: value for key, value in table.items() if key not in former}
