"""Reads configurations of earlier versions that contain removed keys.

A run continues if its value of the key agrees with today's fixed rule. Otherwise it can be read, but not trained.
"""

import logging
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from mccfr.config.limits import shown
from mccfr.config.solvers import FORMER, FullWidthConfig

Table = Mapping[str, Any]


class Gone(NamedTuple):
    """A removed key.

    default  its former default
    now      what replaced it, as a clause that follows the value in a message
    holds    returns True if a table with the key agrees with today's rule; None: if the key has its default
    kind     struct of a table that does not agree; None: today's struct, extended by the key
    """

    default: Any
    now: str
    holds: Callable[[Table], bool] | None = None
    kind: Any = None


def former_value(table: msgspec.Struct, key: str, default: Any) -> Any:
    """Return the value of a removed key in a former run's table, or `default` in today's tables."""
    return getattr(table, key, default)


def _dropped(key: str, now: Any, text: str) -> Gone:
    """Describe a key that is ignored; a value other than `now` logs `text` as a warning."""

    def holds(table: Table) -> bool:
        if table[key] != now:
            logging.getLogger("mccfr.config").warning("mccfr: %s", text)
        return True

    return Gone(now, "", holds)


def _is_memory(solver: Table) -> bool:
    """Return True if deep-cfr's memory of strategies is unused, or as large as `memory`."""
    return "network" not in solver.get("averages", ()) or solver["strategy_memory"] == solver.get("memory", 10**6)


def _is_floored(solver: Table) -> bool:
    return bool(solver["floored_regrets"]) or solver.get("discount", "linear") != "none"


def _fixed(default: Any) -> Gone:
    """Describe a key whose value is now fixed at its former default."""
    return Gone(default, f"in whose place there is always {shown(default)}")


_BASELINE = Gone(0.0, "which is mccfr.gallery.baselines:OutcomeWithBaselines")
_DREAM = "whose outcome sampling with a baseline is mccfr.gallery.dream:Dream"
_SAMPLED = {
    "skip_below": Gone(0.0, "in whose place every line is walked"),
    "warm_start": Gone(None, "in whose place tables begin with zeros"),
    "warm_iterations": Gone(10**6, "in whose place tables begin with zeros", lambda solver: "warm_start" not in solver),
    "averaging_power": Gone(None, "in whose place strategies weigh what regrets do"),
    "floored_regrets": Gone(True, "in whose place regrets without discounts are floored", _is_floored),
}

GONE_KEYS: Mapping[tuple[str, str | None], Mapping[str, Gone]] = {
    ("game", "leduc"): {"ante": _fixed(1)},
    ("game", "akq"): {"pot": _fixed(2), "bet": _fixed(1)},
    ("game", "clairvoyance"): {"pot": _fixed(1)},
    ("game", "flop-holdem"): {"blinds": _fixed((50, 100))},
    ("game", "openspiel"): {
        "max_histories": Gone(
            2_000_000, "in whose place there are 20,000,000", lambda game: game["max_histories"] <= 2 * 10**7
        )
    },
    **{("solver", name): _SAMPLED for name in ("public-chance-sampling", *FORMER)},
    **{
        ("solver", name): {**_SAMPLED, "baseline_rate": _BASELINE} for name in ("external-sampling", "outcome-sampling")
    },
    ("solver", "cfr-br"): {
        "variant": Gone(
            "cfr",
            "whose full width is mccfr.gallery.cfr_br:CfrBestResponse",
            lambda solver: "trunk" in solver,
            FullWidthConfig,
        ),
    },
    ("solver", "deep-cfr"): {
        "fallback": _fixed("argmax"),
        "gradient_norm": _fixed(1),
        "strategy_memory": Gone(10**6, "in whose place there is solver.memory", _is_memory),
        "sampling": Gone("external", _DREAM),
        "epsilon": Gone(0.5, _DREAM),
        "baseline": Gone("none", _DREAM),
        "baseline_memory": Gone(200_000, _DREAM),
        "baseline_steps": Gone(200, _DREAM),
        "baseline_batch": Gone(512, _DREAM),
        "start": Gone("last", _DREAM),
        "sd_weights": Gone("exact", _DREAM),
    },
    ("solver", "cfr"): {
        "schedule": Gone(None, "in whose place variants have one: 'hs-dcfr' of 15, 'hs-dcfr-30' of 30")
    },
    ("run", None): {
        "pool": _dropped(
            "pool",
            "processes",
            "run.pool = 'threads' is passed over: processes train the same bits, as fast (leave the key out)",
        )
    },
    ("tables", None): {
        # For "preflop" and "snapshot_nodes", the struct is `mccfr.config.tables.PREFLOP_SUMS`.
        "strategy_sums": Gone("all", "in whose place all streets have sums"),
        "snapshot_nodes": Gone(None, "which was for tables.strategy_sums = 'preflop' alone"),
    },
    ("cluster", None): {
        "engine": _dropped("engine", "mpi", "cluster.engine is passed over: machines talk by MPI (leave the key out)"),
        "copies": _dropped(
            "copies", 1, "cluster.copies is passed over: there are 2 with cluster.directory, else 1 (leave it out)"
        ),
    },
}
"""Removed keys, by table and by the name that selects its struct, or None."""


def says_nothing(name: str, chosen: str | None, table: Table) -> list[str]:
    """Return the removed keys of a table that agree with today's rule."""
    gone = GONE_KEYS.get((name, chosen), {})
    return [key for key in gone if key in table and _holds(gone[key], key, table)]


def _holds(gone: Gone, key: str, table: Table) -> bool:
    value = tuple(table[key]) if isinstance(table[key], list) else table[key]
    return value == gone.default if gone.holds is None else gone.holds(table)


def as_former(name: str, chosen: str | None, table: Table, kind: Any) -> tuple[Any, dict[str, Any]]:
    """Return the struct and the keys of a table, which may contain removed keys.

    Removed keys that agree with today's rule are left out. If others remain, the struct marks a run that is read but
    not trained (`Table.former`).
    """
    gone, nothing = GONE_KEYS.get((name, chosen), {}), says_nothing(name, chosen, table)
    own = {key: value for key, value in table.items() if key not in nothing}
    key = next((key for key in gone if key in own and not _holds(gone[key], key, own)), None)
    if key is None:
        return kind, own
    of, what = gone[key].kind or kind, f"{name}.{key} = {shown(own[key])}, {gone[key].now} now,"
    return _former(of, kind.__struct_config__.tag, what, name, chosen), own


@lru_cache(64)
def _former(kind: Any, tag: str | None, what: str, name: str, chosen: str | None) -> Any:
    fields = [(key, Any, gone.default) for key, gone in GONE_KEYS[name, chosen].items()]
    return msgspec.defstruct(
        "Former" + kind.__name__,
        fields,
        bases=(kind,),
        namespace={"former": kind.former or what},
        tag=tag,
        frozen=True,
        kw_only=True,
    )
