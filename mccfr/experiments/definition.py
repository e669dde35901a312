"""Reads experiments: a run's configuration with a `[compare]` table of variants to compare.

    [compare]
    base = "../leduc.toml"       # file whose keys apply unless this file sets them
    x = "nodes"                  # x axis: "iterations", "nodes" or "seconds" (of training)
    last = 1e8                   # end of the runs; measured at `points` log-spaced values from `first`, or at `at`
    seeds = [0, 1, 2]

    [[compare.variant]]
    name = "linear"
    set = ["solver.discount=linear"]

Each variant is trained with each seed. Its strategies are measured at points on the x axis, such as numbers of nodes.
Limits, evaluation points and seeds of the runs come from `[compare]`; all other tables are those of a run.
"""

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from mccfr.config import plugins
from mccfr.config.run_tables import Config, EvaluationConfig
from mccfr.config.table_base import Table
from mccfr.config.toml_files import config_from, converted, load_document, options_struct, override, parse_override
from mccfr.solvers.registry import algorithm_of

AXES = {"iterations": "iterations", "nodes": "nodes_touched", "seconds": "training_seconds"}
"""X axes of curves, with their column of the table."""


class Measure(NamedTuple):
    """A quantity that an experiment measures, such as exploitability, and how to plot it.

    label   text of the y axis
    method  name of the evaluation method that gives it; None: all methods' records give it
    linear  True: linear axis, arithmetic means over seeds, differences of variants.  False: logarithmic axis, geometric
            means, ratios
    """

    label: str
    method: str | None
    linear: bool = False


MEASURES = {
    "exploitability_mbb": Measure("exploitability, mean of both players (mbb/g)", "exact"),
    "exploitability_chips": Measure("exploitability, mean of both players (chips)", "exact"),
    "nash_conv_chips": Measure("NashConv, the sum of all players' gains (chips)", "exact"),
    "nodes_per_iteration": Measure("nodes touched per iteration", None),
    "lbr_mbb": Measure("what local best response wins (mbb/g)", "lbr", linear=True),
    "lbr_chips": Measure("what local best response wins (chips)", "lbr", linear=True),
    "sampled_br_mbb": Measure("what a best response on sampled boards wins (mbb/g)", "sampled-br", linear=True),
    "sampled_br_chips": Measure("what a best response on sampled boards wins (chips)", "sampled-br", linear=True),
}
"""Allowed values of an experiment's `y`."""

_SMALLEST_SECONDS = 0.1
_SECONDS_APART = 1.1  # smallest ratio of neighbouring points in seconds; closer ones are not distinguishable
_EXACT = ("exact",)
_FIRST = {"iterations": (1, 0.0), "nodes": (1, 1e-3), "seconds": (_SMALLEST_SECONDS, 1e-2)}
"""Default of `first`: its least value, and the share of `last`."""

_REPLACED = frozenset(
    {f"run.{key}" for key in ("nodes", "iterations", "seconds", "checkpoint_nodes", "keep_checkpoints")}
    | {f"evaluation.{key}" for key in ("method", "at_nodes", "at_iterations", "every_checkpoint", "at_end", "keep")}
    | {"solver.seed"}
)
"""Keys that `Experiment.run_config` replaces, besides the table `[export]`."""

Document = dict[str, Any]


class _VariantTable(Table, frozen=True):
    """Settings of one variant (curve) of an experiment: a `[[compare.variant]]` table in TOML.

    name     name of the curve
    set      changes of the run's configuration, as `table.key=value` texts
    of       name of an earlier variant. This variant then trains no runs of its own: it measures that variant's runs
    average  name of the average strategy of these runs to measure, if the algorithm keeps several
    """

    name: str
    set: Sequence[str] = ()
    of: str | None = None
    average: str | None = None


class _CompareTable(Table, frozen=True):
    """The `[compare]` table: axes, measuring points, seeds and variants of an experiment.

    base    configuration file of a run; its keys apply unless the experiment's file sets them
    title   text above the plot
    x, y    x axis (iterations, nodes or seconds), and the quantities to measure (keys of MEASURES)
    first   smallest point on the x axis at which runs are measured; None: a default of the axis
    last    largest point, the end of the runs
    points  number of points from first to last, in geometric progression
    at      the points themselves, in place of first, last and points
    seeds   random seeds; each variant has a run for each seed, or one run if its algorithm uses no random numbers
    """

    base: str | None = None
    title: str = ""
    x: Literal["iterations", "nodes", "seconds"] = "iterations"
    y: str | Sequence[str] = ()  # none: exploitability, in mbb/g if the game has a big blind
    first: float | None = None
    last: float | None = None
    points: Annotated[int, Meta(ge=1, le=1000)] = 30
    at: Sequence[float] = ()
    seeds: Annotated[Sequence[Annotated[int, Meta(ge=0, le=2**63 - 1)]], Meta(min_length=1)] = (0,)
    variant: Sequence[_VariantTable] = ()


@dataclass(frozen=True)
class ExperimentVariant:
    """One curve of an experiment: runs of one configuration with several seeds.

    name       name of the curve
    directory  beginning of the names of its run directories; the seed follows
    config     configuration of its runs; each run has a seed of its own
    average    name of the average strategy to measure in the runs of another variant. None: the variant has runs of its
               own, whose first average strategy is measured
    """

    name: str
    directory: str
    config: Config
    average: str | None = None


@dataclass(frozen=True)
class Experiment:
    """A checked experiment: variants and seeds of runs, and points at which they are measured.

    measures  quantities to measure, keys of MEASURES; empty: exploitability, in mbb/g if the game has a big blind,
              else in chips
    axis      x axis, a key of AXES
    points    ascending values on the axis at which strategies are measured; the runs end at the last
    """

    title: str
    axis: str
    measures: tuple[str, ...]
    points: tuple[float, ...]
    seeds: tuple[int, ...]
    variants: tuple[ExperimentVariant, ...]

    def run_config(self, variant: ExperimentVariant, seed: int) -> Config:
        """Return a run's configuration: the variant's, with seed, limits and points of evaluation.

        The run keeps one checkpoint and writes no export. On the axis "seconds" the limit of training is set later, for
        each point.
        """
        changed = msgspec.structs.replace
        counts = tuple(int(point) for point in self.points) if self.axis != "seconds" else ()
        at_nodes = counts if self.axis == "nodes" else ()
        at_iterations = counts if self.axis == "iterations" else ()
        return changed(
            variant.config,
            solver=changed(variant.config.solver, seed=seed) if self._is_seeded(variant) else variant.config.solver,
            run=changed(
                variant.config.run,
                nodes=max(at_nodes, default=None),
                iterations=max(at_iterations, default=None),
                seconds=None,
                checkpoint_nodes=None,
                keep_checkpoints=1,
            ),
            evaluation=changed(
                variant.config.evaluation if self.methods != _EXACT else EvaluationConfig(),
                method=self.methods,
                at_nodes=at_nodes,
                at_iterations=at_iterations,
                every_checkpoint=False,
                at_end=True,
                keep=False,
            ),
            export=None,
        )

    @property
    def runs(self) -> list[tuple[int, ExperimentVariant]]:
        """Return (seed, variant) of every run to train, in the order of training: seed by seed."""
        own = [variant for variant in self.variants if variant.average is None]
        return [(seed, variant) for seed in self.seeds for variant in own if seed in self.seeds_of(variant)]

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the names of the evaluation methods that compute the experiment's measures."""
        return tuple(dict.fromkeys(m for name in self.measures if (m := MEASURES[name].method))) or _EXACT

    def seeds_of(self, variant: ExperimentVariant) -> tuple[int, ...]:
        """Return the seeds of a variant's runs; only one if the algorithm is deterministic."""
        return self.seeds if self._is_seeded(variant) else self.seeds[:1]

    @staticmethod
    def _is_seeded(variant: ExperimentVariant) -> bool:
        return algorithm_of(variant.config).traits.seeded


def load_experiment(path: Path, overrides: Sequence[str] = ()) -> Experiment:
    """Read an experiment from its TOML file.

    overrides  changes of the file's keys, as `table.key=value` texts

    Raises `ValueError` for wrong contents, with file, key, value and the allowed values.
    """
    for text in overrides:
        _check_override(text, "--set")
    return experiment_from(load_document(path, overrides), path.parent, str(path))


def _check_override(text: str, what: str) -> None:
    """Raise `ValueError` for a configuration key that the experiment itself sets in its runs.

    Such keys are, for example, limits of training, evaluation points and the seed.

    text  change of the configuration, `table.key=value`
    what  word before the text in the error message, such as "--set"
    """
    if (path := parse_override(text)[0]) in _REPLACED or path.startswith("export."):
        raise ValueError(f"{what} {text}: {path} has no effect on an experiment: [compare] says when runs are measured")


def merged(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> Document:
    """Merge two TOML documents; where both have a key, the value of `upper` counts.

    Where both values are tables, these are merged in the same way.
    """
    result = dict(lower)
    for key, value in upper.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return result


def _with_absolute_paths(document: Document, folder: Path) -> Document:
    """Return a run's configuration with absolute file names; they were relative to `folder`.

    document  the parsed configuration

    Also imports the user's modules that the configuration names; they are searched in `folder` first.
    """
    plugins.load_user_code(document, (folder,))
    game = document.get("game")
    kind = options_struct("game", str(game.get("name"))) if isinstance(game, Mapping) else None
    files = [("game", key) for key in (kind.file_keys if kind else ())]
    for table, key in (*files, ("abstraction", "path"), ("abstraction", "recipe")):
        name = document.get(table, {}).get(key) if isinstance(document.get(table), Mapping) else None
        if isinstance(name, str):
            document = merged(document, {table: {key: str((folder / name).resolve())}})
    return document


def experiment_from(document: Mapping[str, Any], folder: Path, source: str) -> Experiment:
    """Return the experiment of a parsed TOML document.

    folder  base of relative file names
    source  name of the document in errors

    Raises `ValueError` for wrong contents, with source, key, value and the allowed values.
    """
    table = _compare_table(document, source)
    try:
        run_document = _with_absolute_paths({key: value for key, value in document.items() if key != "compare"}, folder)
        if table.base is not None:
            path = folder / table.base
            base = _with_absolute_paths(load_document(path), path.parent)
            base.pop("compare", None)
            if isinstance(solver := run_document.get("solver"), Mapping) and "algorithm" in solver:
                override(base, "solver.algorithm", solver["algorithm"], source)
            run_document = merged(base, run_document)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    if len(set(table.seeds)) != len(table.seeds):
        raise ValueError(f"{source}: compare.seeds = {list(table.seeds)!r} names a seed twice")
    return Experiment(
        table.title,
        table.x,
        _measures(table, source),
        _points(table, source),
        tuple(table.seeds),
        tuple(_variants(table, run_document, folder, source)),
    )


def _compare_table(document: Mapping[str, Any], source: str) -> _CompareTable:
    if not isinstance(document.get("compare"), Mapping):
        raise ValueError(
            f"{source} has no [compare] table: an experiment needs one with last = ... and [[compare.variant]] tables"
        )
    try:
        table: _CompareTable = converted(document["compare"], "compare", _CompareTable)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    return table


def _measures(table: _CompareTable, source: str) -> tuple[str, ...]:
    names = (table.y,) if isinstance(table.y, str) else tuple(table.y)
    for name in names:
        if name not in MEASURES:
            raise ValueError(f"{source}: compare.y = {name!r} is not one of: {', '.join(MEASURES)}")
    return names


def _points(table: _CompareTable, source: str) -> tuple[float, ...]:
    """Return the points on the x axis at which the runs are measured, ascending.

    They come from the `[compare]` table: its points `at`, or the spaced ones from `first` to `last`. On the axes
    "iterations" and "nodes" they are whole numbers, so close points may become one. Raises `ValueError`, beginning with
    the file name `source`, for points that are not allowed.
    """
    if table.at:
        if table.first is not None or table.last is not None:
            raise ValueError(
                f"{source}: compare.at is given beside first or last: give either the points or their ends"
            )
        points = sorted(set(table.at))
    else:
        points = _spaced(table, source)
    whole = table.x != "seconds"
    if whole:
        points = sorted({float(round(point)) for point in points})
    smallest = 1 if whole else _SMALLEST_SECONDS
    if not (smallest <= points[0] and points[-1] < 2**62):
        raise ValueError(
            f"{source}: compare measures at {points[0]:g} {table.x}: points must be at least {smallest:g} and finite"
        )
    if not whole and any(b < _SECONDS_APART * a for a, b in pairwise(points)):
        raise ValueError(
            f"{source}: compare measures at points closer than a tenth: points in seconds must be further apart "
            "(fewer points, or a lower first)"
        )
    return tuple(points)


def _spaced(table: _CompareTable, source: str) -> list[float]:
    if table.last is None:
        raise ValueError(f"{source}: compare.last is missing: it says how many {table.x} the runs have (or give at)")
    least, share = _FIRST[table.x]
    first = max(least, share * table.last) if table.first is None else table.first
    if not 0 < first <= table.last < float("inf"):
        raise ValueError(
            f"{source}: compare.first = {first:g}, compare.last = {table.last:g}: 0 < first <= last is needed"
        )
    spaced = np.geomspace(first, table.last, table.points) if table.points > 1 else np.array([table.last])
    return [float(point) for point in spaced]


def _variants(table: _CompareTable, document: Document, folder: Path, source: str) -> list[ExperimentVariant]:
    variants: list[ExperimentVariant] = []
    for own_table in table.variant or (_VariantTable(name="run"),):
        where, variant_document = f"{source}: variant {own_table.name!r}", deepcopy(document)
        if any(own_table.name == other.name for other in variants):
            raise ValueError(f"{where} is there twice: each variant needs a name of its own")
        if own_table.of is not None or own_table.average is not None:
            variants.append(_variant_of_average(own_table, variants, where))
            continue
        try:
            for text in own_table.set:
                _check_override(text, "set")
                override(variant_document, *parse_override(text), f"set {text}")
            variant_document = _with_absolute_paths(variant_document, folder)
        except ValueError as error:
            raise ValueError(f"{where}: {str(error).removeprefix('--')}") from None
        directory = directory_name(own_table.name)
        if not directory or any(directory == other.directory for other in variants):
            raise ValueError(
                f"{where}: its runs would lie in {directory!r}-SEED: names need letters or digits that tell them apart"
            )
        variants.append(ExperimentVariant(own_table.name, directory, config_from(variant_document, where)))
    return variants


def _variant_of_average(own_table: _VariantTable, others: Sequence[ExperimentVariant], where: str) -> ExperimentVariant:
    """Return a variant that measures another average strategy of an earlier variant's runs.

    Some algorithms keep several average strategies in one run.

    own_table  the variant's table, with `of` and `average`
    others     earlier variants
    where      name of the variant in errors

    Raises `ValueError` if there is no such variant or average, or the table has `set`.
    """
    base = next((other for other in others if other.name == own_table.of and other.average is None), None)
    if base is None or own_table.set:
        known = ", ".join(repr(other.name) for other in others if other.average is None) or "none yet"
        raise ValueError(
            f"{where}: of = {own_table.of!r} must name a variant before it ({known}), whose runs it has; no set"
        )
    averages = algorithm_of(base.config).averages.names
    if own_table.average not in averages:
        known = ", ".join(averages) or "one average"
        raise ValueError(
            f"{where}: average = {own_table.average!r} is none of those that runs of {base.name!r} have: {known}"
        )
    return replace(base, name=own_table.name, average=own_table.average)


def directory_name(name: str) -> str:
    """Return a variant's name as a directory name, of lower-case letters, digits, . and -.

    For example, "DCFR(3/2, 0, 2)" becomes dcfr-3-2-0-2 and "CFR+" cfr-plus.
    """
    spelt = name.lower().replace("+", " plus ").replace("∞", " inf ").replace("½", " half ").replace("−", "-")
    spelt = re.sub(r"-(?=[0-9]|\s*inf)", " minus ", spelt)
    return "-".join(re.findall(r"[a-z0-9.]+", spelt)).strip(".")
