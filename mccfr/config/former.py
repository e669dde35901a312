"""Keys that tables have no longer: runs that have one are read as ever.

They go on where it says what is the rule now, and are trained no longer where it says something else.
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
    """A key that went.

    default  that it had
    now      what became of it, as a clause after its value
    holds    whether a table with it says what is the rule now; None: where the key has its default
    kind     the struct of a table where it says something else; None: that of today, with the key
    """

    default: Any
    now: str
    holds: Callable[[Table], bool] | None = None
    kind: Any = None


def former_value(table: msgspec.Struct, key: str, default: Any) -> Any:
    """What a key that went says in a run of then, and `default` in one of today."""
    return getattr(table, key, default)


def _dropped(key: str, now: Any, text: str) -> Gone:
    """Of a key that is passed over: who sets something else hears once what there is instead."""

    def holds(table: Table) -> bool:
        if table[key] != now:
            logging.getLogger("mccfr.config").warning("mccfr: %s", text)
        return True

    return Gone(now, "", holds)


def _is_memory(solver: Table) -> bool:
    """Of deep-cfr, which keeps strategies for the average of a network alone."""
    return "network" not in solver.get("averages", ()) or solver["strategy_memory"] == solver.get("memory", 10**6)


def _is_floored(solver: Table) -> bool:
    return bool(solver["floored_regrets"]) or solver.get("discount", "linear") != "none"


def _fixed(default: Any) -> Gone:
    """Of a key that has one value now."""
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
        # Of "preflop", with "snapshot_nodes", `mccfr.config.tables.PREFLOP_SUMS` is the table.
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
"""By table, and by what chooses its struct where something does: the keys that it had."""


def says_nothing(name: str, chosen: str | None, table: Table) -> list[str]:
    """The keys of a table that it has no longer and that say what is the rule now."""
    gone = GONE_KEYS.get((name, chosen), {})
    return [key for key in gone if key in table and _holds(gone[key], key, table)]


def _holds(gone: Gone, key: str, table: Table) -> bool:
    value = tuple(table[key]) if isinstance(table[key], list) else table[key]
    return value == gone.default if gone.holds is None else gone.holds(table)


def as_former(name: str, chosen: str | None, table: Table, kind: Any) -> tuple[Any, dict[str, Any]]:
    """The struct and the keys of a table, of which some may be gone.

    Those that say what is the rule now are left out.  With others the struct is that of a run which is read, and not
    trained (`Table.former`): `kind`, or another one, with the keys besides.
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
