"""Judges a plan: whether the run can work on this machine, and what speaks against it.

Advice is given only if the plan's own figures show that it helps.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from mccfr.config.run_tables import Config
from mccfr.runs.reporter import duration_text
from storage.free_space import bytes_text

FITS, FITS_BUT, CANNOT_WORK = "fits", "fits, but", "cannot work"
LEAST_VISITS, ENOUGH_VISITS = 0.1, 10.0
"""Mean visits of an infoset: below the first a run cannot work; the second is enough on each street."""
_PAUSE_SHARE = 10  # proposed time between checkpoints, over the time to write one
_LONGEST_SECONDS = 366 * 86_400.0  # a longer training is no advice


class Reason(NamedTuple):
    """A problem of a planned run.

    is_fatal  True: with this problem the run cannot work
    text      sentence on the problem, in most cases with advice
    """

    is_fatal: bool
    text: str


def verdict(config: Config, plan: Mapping[str, Any], lacks: Sequence[str]) -> dict[str, Any]:
    """Return the fields `verdict` and `reasons`, which tell a user whether a planned run can work.

    `verdict` is FITS, FITS_BUT or CANNOT_WORK.  `reasons` are sentences, the fatal ones first.

    plan   fields of the plan without these two (`mccfr.runs.session.run_plan.make_plan`)
    lacks  sentences on missing memory or disk
    """
    found = [Reason(True, lack) for lack in lacks]
    found += [*_of_checkpoints(config, plan), *_of_visits(plan), *_of_memory(plan), *_of_deadline(config, plan)]
    found += [Reason(False, text) for text in plan.get("turn_warnings", ())]
    if plan["seconds"] is None and not _has_limit(config):
        found.append(Reason(False, "the run has no limit: it trains until it is stopped"))
    found.sort(key=lambda reason: not reason.is_fatal)
    words = CANNOT_WORK if any(reason.is_fatal for reason in found) else FITS_BUT if found else FITS
    return {"verdict": words, "reasons": [reason.text for reason in found]}


def _of_checkpoints(config: Config, plan: Mapping[str, Any]) -> Iterator[Reason]:
    """Yield a fatal reason if writing a checkpoint takes longer than `run.checkpoint_seconds`."""
    takes, between, seconds = plan["checkpoint_seconds"], config.run.checkpoint_seconds, plan["seconds"]
    if takes <= between:
        return
    advice, slower = "make the tables smaller: fewer buckets or bet sizes", _PAUSE_SHARE * takes
    if seconds is None or slower < seconds:
        advice = f"set run.checkpoint_seconds = {ceil(slower)}"
    elif plan["plain_checkpoint_seconds"] <= between:
        advice = 'set tables.checkpoint_compression = "none"'
    yield Reason(
        True,
        f"a checkpoint of {bytes_text(plan['checkpoint_bytes'])} takes {duration_text(takes)} to write, and "
        f"run.checkpoint_seconds = {between:g} asks for one every {duration_text(between)}: {advice}",
    )


def _of_visits(plan: Mapping[str, Any]) -> Iterator[Reason]:
    """Yield a reason if infosets of a street get fewer than ENOUGH_VISITS visits on average.

    It is fatal if the mean over all streets is below LEAST_VISITS. Nothing is yielded if the run has no limit, or if
    the visits of a street are unknown or 0. The reason states how many nodes are enough, if training them takes at most
    a year.
    """
    visits, infosets = plan["visits_per_infoset_per_street"], np.array(plan["infosets_per_street"], float)
    if visits is None or plan["seconds"] is None or not min(visits) or min(visits) >= ENOUGH_VISITS:
        return
    rarest, mean = int(np.argmin(visits)), float(np.dot(visits, infosets) / infosets.sum())
    factor = ENOUGH_VISITS / visits[rarest]
    nodes, seconds = factor * plan["iterations"] * plan["nodes_per_iteration"], factor * plan["seconds"]
    advice = "take fewer buckets or bet sizes"
    if seconds <= _LONGEST_SECONDS:
        advice = f"{nodes:.1e} nodes, which take {duration_text(seconds)}, visit it {ENOUGH_VISITS:g} times"
    yield Reason(
        mean < LEAST_VISITS,
        f"an infoset is visited {mean:.2g} times on average, one of street {rarest} {visits[rarest]:.2g} times: "
        f"{advice}",
    )


def _of_memory(plan: Mapping[str, Any]) -> Iterator[Reason]:
    """Yield a reason if memory suffices for training, but not for copies or evaluations.

    Copies of the tables are written as checkpoints while workers train; evaluations need strategies.
    """
    needed, available = plan["memory_bytes"], plan["memory_available_bytes"]
    if plan["least_memory_bytes"] <= available < needed:
        yield Reason(
            False,
            f"checkpoints and evaluations need {bytes_text(needed)} of memory, and {bytes_text(available)} are there: "
            f"without a copy of the tables workers rest {duration_text(plan['checkpoint_seconds'])} for a checkpoint",
        )


def _of_deadline(config: Config, plan: Mapping[str, Any]) -> Iterator[Reason]:
    """Yield a fatal reason if a run with a limit ends after its deadline.

    The reason names changes with which the run would end in time, such as more workers or fewer nodes.
    """
    budget = plan.get("budget_seconds")
    if budget is None or not _has_limit(config) or plan["total_seconds"] <= budget:
        return
    workers, machines, nodes = plan["budget_workers"], plan["budget_machines"], plan["budget_nodes"]
    ways = [] if config.run.seconds is None else ["lower run.seconds"]
    if workers is not None:
        of = f", or {machines} machines of {max(1, config.run.workers)}"
        ways.append(f"take {workers} workers{of if machines is not None and machines > 1 else ''}")
    if nodes >= 1:
        ways.append(f"set run.nodes = {_two_digits_down(nodes)}")
    advice = ", or ".join(ways) or "build the abstraction before, or take a longer time"
    yield Reason(
        True, f"the run takes {duration_text(plan['total_seconds'])}, and --budget is {duration_text(budget)}: {advice}"
    )


def _has_limit(config: Config) -> bool:
    return any((config.run.nodes, config.run.iterations, config.run.seconds))


def _two_digits_down(number: float) -> str:
    """Return a number as text, rounded down to two significant digits: "1.2e+10"."""
    unit = 10 ** max(0, len(str(int(number))) - 2)
    return f"{int(number) // unit * unit:.1e}"
