"""Keys that tables have no longer: what was written when they had one is read, where it says what is the rule now."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from mccfr.config.limits import shown
from mccfr.config.solvers import FORMER, LAST_TRAINED

Table = Mapping[str, Any]


def _is_told(run: Table) -> bool:
    """Of runs by threads, which go on: they hear once what trains them now."""
    if run["pool"] == "threads":
        text = "run.pool = 'threads' is passed over: processes train the same bits, as fast (leave the key out)"
        logging.getLogger("mccfr.config").warning("mccfr: %s", text)
    return True


Gone = Mapping[str, tuple[Callable[[Table], bool], str]]


def _always(**values: Any) -> Gone:
    """Of keys that have one value now."""

    def holds(key: str) -> Callable[[Table], bool]:
        return lambda table: bool(table[key] == values[key])

    return {key: (holds(key), repr(value)) for key, value in values.items()}


def _is_memory(solver: Table) -> bool:
    """Of deep-cfr, which keeps strategies for the average of a network alone."""
    return "network" not in solver.get("averages", ()) or solver["strategy_memory"] == solver.get("memory", 10**6)


GONE_KEYS: Mapping[tuple[str, str | None], Gone] = {
    ("game", "leduc"): _always(ante=1),
    ("game", "akq"): _always(pot=2, bet=1),
    ("game", "clairvoyance"): _always(pot=1),
    ("game", "flop-holdem"): _always(blinds=[50, 100]),
    ("game", "openspiel"): {"max_histories": (lambda game: game["max_histories"] <= 20_000_000, "20,000,000")},
    **{
        ("solver", name): {
            **_always(skip_below=0),
            "warm_start": (lambda solver: False, "of 'cfr-br' alone, nodes of external sampling"),
            "warm_iterations": (lambda solver: "warm_start" not in solver, "for solver.warm_start alone"),
            "floored_regrets": (
                lambda solver: solver["floored_regrets"] or solver.get("discount", "linear") != "none",
                "true with solver.discount = 'none'",
            ),
            "averaging_power": (lambda solver: False, "what regrets weigh"),
        }
        for name in ("external-sampling", "outcome-sampling", "public-chance-sampling", *FORMER)
    },
    ("solver", "cfr-br"): {
        "variant": (lambda solver: "trunk" in solver, "that of sampled boards: full width went too")
    },
    ("solver", "deep-cfr"): {
        **_always(fallback="argmax", gradient_norm=1),
        "strategy_memory": (_is_memory, "solver.memory"),
    },
    ("solver", "cfr"): {
        "schedule": (lambda solver: False, "a variant's: 'hs-dcfr' has 15, 'hs-dcfr-30' has 30"),
    },
    ("run", None): {"pool": (_is_told, "'processes'")},
    ("tables", None): {
        # Of "preflop", with "snapshot_nodes", `mccfr.config.tables.PREFLOP_SUMS` is the table.
        "strategy_sums": (lambda tables: tables["strategy_sums"] == "all", "'all'"),
        "snapshot_nodes": (lambda tables: False, "for tables.strategy_sums = 'preflop' alone"),
    },
    ("cluster", None): {
        **_always(engine="mpi"),
        "copies": (
            lambda cluster: cluster["copies"] == 1 or "directory" in cluster,
            "2 with cluster.directory, else 1",
        ),
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
