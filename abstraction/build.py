"""Builds an abstraction: one stage for each street, saved when it is complete.

A *recipe* is a TOML file of settings from which an abstraction is built.  A *stage* holds the bucket of every hand on
every canonical board (for a small deck: on every board), and statistics of the buckets.  It is saved as a checkpoint,
with checksums.  A stage's *parents* are the adjoining streets whose buckets it is built from.  A second build skips
stages whose settings and parents are unchanged, and resumes an interrupted clustering.  The same recipe gives the same
bytes, for any number of threads or interruptions.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstraction.buckets import CELLS, HISTORY, stated_cells
from abstraction.build_estimates import recipe_bytes, recipe_seconds
from abstraction.clustering_checkpoint import SECONDS, FileStateSaver
from abstraction.deck_models import SmallDeck, StageInputs, StandardDeck
from abstraction.potential_aware import NextStreet
from abstraction.recall_buckets import Table
from abstraction.recipe import (
    STREETS,
    Recipe,
    build_order,
    check_recipe,
    next_street,
    parent_streets,
    remembers,
    stage_document,
    street_before,
)
from abstraction.stages import Phases, StageMaker
from storage import durable
from storage.atomic_outputs import check_output
from storage.checkpoint import Checkpoint, checkpoint_path, list_checkpoints, newest_valid, next_number, open_checkpoint
from storage.checkpoint_writer import commit, drop_older, sweep
from storage.checksums import cells_checksum
from storage.cleanup import failure_logged
from storage.damage import DamagedError
from storage.free_space import available_memory_bytes, bytes_text
from storage.manifest import content_hash
from storage.run_lock import RunLock
from storage.schema import ArraySpec

FORMAT_VERSION = 2
_LOCK = "build.lock"
_EVERY_STAGE = 2**62
_AXES = {
    "bucket": ("board", "hole cards"),
    "hands": ("bucket",),
    "equity": ("bucket",),
    "centres": ("bucket", "coordinate"),
    HISTORY: ("bucket before", "percentile"),
}

Progress = Callable[[str, float], None]
"""Called with the name of a stage or of a part of it, and the completed share, 0 to 1.

Each name begins with 0 and ends with 1.  The stage, such as "flop of quick (3 of 4)", is reported before and after its
parts, such as "flop of quick (3 of 4), clustering".
"""


class Builder:
    """Builds the buckets of all hands for each street of a recipe, one checkpoint for each street.

    A recipe is a TOML file of settings, such as features and number of buckets of each street.
    """

    def __init__(
        self,
        recipe: Recipe,
        out: Path,
        workers: int = 1,
        progress: Progress | None = None,
        save_seconds: float = SECONDS,
    ) -> None:
        """Check the recipe; nothing is built yet.

        recipe        settings of each street's buckets, parsed from a TOML file
        out           directory of the abstraction, which need not exist
        workers       number of threads
        progress      called with the name of a street or of a part of its build, and the share done, 0 to 1
        save_seconds  interval at which the state of a running clustering is saved, for resuming

        Raises `ValueError` if the settings are invalid.
        """
        check_recipe(recipe)
        self._recipe, self._out, self._workers = recipe, Path(out), workers
        self._progress = progress or (lambda _stage, _share: None)
        self._save_seconds = save_seconds
        deck = StandardDeck(workers) if recipe.deck is None else SmallDeck(recipe.deck.listing(), workers)
        self._maker = StageMaker(workers, deck)

    def build(self, streets: Sequence[str] | None = None, *, replace: bool = False) -> list[str]:
        """Build the missing ones of the given streets (None: all); return the names of those built.

        Other streets from whose buckets these are built are built too, if missing.  `replace` allows replacing
        buckets of another recipe (settings of a build).  All streets are checked before the first is built.  Raises:

        * `FileExistsError` if the directory holds other files, or buckets of another recipe without `replace`
        * `MemoryError`, with the needed and the available memory, if that is too small
        * `BlockingIOError` while another process builds in the same directory
        * `ValueError`, perhaps after computing features, for fewer distinct points than buckets
        """
        needed, built = self.check(streets, replace=replace), list[str]()
        with durable.making_dirs(self._out), RunLock(self._out / _LOCK):
            try:
                for street in self._missing(needed):
                    self._check_memory(street)
                for number, street in enumerate(needed, 1):
                    sweep(self._out / street)
                    identity, parents = self._identity(street)
                    stage, _ = newest_valid(self._out / street)
                    if stage is None or stage.identity != identity:
                        self._check_memory(street)
                        name = f"{street} of {self._out.name} ({number} of {len(needed)})"
                        self._stage(street, name, identity, parents)
                        built.append(street)
            except BaseException:
                with suppress(OSError):  # the first error is the one that matters
                    if [entry.name for entry in self._out.iterdir()] == [_LOCK]:
                        (self._out / _LOCK).unlink()
                raise
        return [street for street in self._recipe.streets if street in built]

    def check(self, streets: Sequence[str] | None = None, *, replace: bool = False) -> list[str]:
        """Check the directory; return the names of the streets that a build needs, in the order of building.

        streets  streets to build; None: all.  The result adds those whose buckets they are built from

        Raises `FileExistsError` if the directory holds other files, or, without `replace`, buckets of other settings.
        """
        check_output(self._out.resolve(), _is_begun)
        needed = self._with_parents(self._recipe.streets if streets is None else streets)
        if (others := self.replaced(needed)) and not replace:
            raise FileExistsError(
                f"{self._out} holds buckets of another recipe ({'; '.join(others)}): choose another directory, or "
                "replace them with mccfr abstraction build RECIPE --out DIR --replace"
            )
        return needed

    def missing_seconds(self) -> float:
        """Return the estimated seconds to build the missing streets, without the time to compile code."""
        return sum(recipe_seconds(self._recipe, self._workers)[street] for street in self._missing())

    def memory_problem(self) -> str | None:
        """Return a sentence if memory is too small to build the missing streets, or None."""
        return next(filter(None, map(self._memory_problem, self._missing())), None)

    def _missing(self, streets: Sequence[str] | None = None) -> list[str]:
        """Return which of the streets (None: all) lack buckets that match the recipe's settings."""
        some = self._recipe.streets if streets is None else streets
        return [street for street in some if self._difference(street) or not list_checkpoints(self._out / street)]

    def replaced(self, streets: Sequence[str] | None = None) -> list[str]:
        """Return a text for each street whose buckets on disk have other settings than the recipe.

        streets  streets to compare; None: all

        Each text names the first different key, such as "flop.buckets = 500 there and 1000 here": there in the
        directory, here in the recipe.
        """
        differences = map(self._difference, self._recipe.streets if streets is None else streets)
        return [text for text in differences if text is not None]

    def _difference(self, street: str) -> str | None:
        """Return the text of `replaced` for one street: its first different setting; else None."""
        document, numbers = stage_document(self._recipe, street), list_checkpoints(self._out / street)
        try:
            stored = open_checkpoint(checkpoint_path(self._out / street, numbers[-1])).identity.get("recipe")
        except (IndexError, DamagedError, FileNotFoundError):  # absent or damaged, so it is built again
            return None
        if stored == document or not isinstance(stored, dict):
            return None
        key = next(key for key in [*document, *stored] if document.get(key) != stored.get(key))
        return f"{street}.{key} = {stored.get(key)!r} there and {document.get(key)!r} here"

    def _with_parents(self, streets: Sequence[str]) -> list[str]:
        needed, order = set(streets), build_order(self._recipe)
        for street in reversed(order):  # parents of a street come before it
            if street in needed:
                needed.update(parent_streets(self._recipe, street))
        return [street for street in order if street in needed]

    def _memory_problem(self, street: str) -> str | None:
        needed, available = recipe_bytes(self._recipe, self._workers)[street], available_memory_bytes()
        if needed <= available:
            return None
        return (
            f"building the {street} with --workers {self._workers} needs about {bytes_text(needed)} of memory and "
            f"{bytes_text(available)} are available: take fewer workers, free memory or use a larger machine"
        )

    def _check_memory(self, street: str) -> None:
        if (problem := self._memory_problem(street)) is not None:
            raise MemoryError(problem)

    def _identity(self, street: str) -> tuple[dict[str, Any], dict[str, Checkpoint]]:
        """Return (JSON document that determines a street's buckets, {parent street: checkpoint}).

        Parents are the adjoining streets whose buckets this one is built from: the next, the one before, both or none.
        """
        document, stages = stage_document(self._recipe, street), {}
        for parent in parent_streets(self._recipe, street):
            newest, _ = newest_valid(self._out / parent)
            if newest is not None:
                stages[parent] = newest
        parents = {parent: _content(newest) for parent, newest in stages.items()}
        stage = content_hash({**document, "parents": parents, "format_version": FORMAT_VERSION})
        return {"stage": stage, "recipe": document, "parents": parents}, stages

    def _stage_inputs(self, street: str, stages: dict[str, Checkpoint]) -> StageInputs:
        """Return the buckets of other streets from which `street` is built, from their checkpoints.

        stages  {street: checkpoint} of the streets whose buckets it uses (`parent_streets`)
        """
        following, before = next_street(self._recipe, street), street_before(self._recipe, street)
        if remembers(self._recipe, street):
            earlier_stages = [newest_valid(self._out / other)[0] for other in STREETS[: STREETS.index(street)]]
            return StageInputs(earlier=[_table(stage) for stage in earlier_stages if stage is not None])
        return StageInputs(
            None if following is None else _next_street(stages[following]),
            None if before is None else stages[before].read("bucket"),
        )

    def _stage(self, street: str, name: str, identity: dict[str, Any], parents: dict[str, Checkpoint]) -> None:
        """Build a street's buckets and save them as a checkpoint.

        name      name of the street in progress reports
        identity  JSON document that determines the buckets: the settings and the parents' hashes
        parents   {street: checkpoint} of the streets from whose buckets this one is built
        """
        root = self._out / street
        self._progress(name, 0.0)
        saver = FileStateSaver(self._out / f"unfinished-{street}", identity, self._save_seconds)
        phases = Phases(lambda part, share: self._progress(f"{name}, {part}", share))
        arrays, facts = self._maker.make(identity["recipe"], self._stage_inputs(street, parents), saver, phases)
        with phases.phase("files"):
            specs = [ArraySpec(name, array.shape, array.dtype.name, _AXES[name]) for name, array in arrays.items()]
            commit(
                root,
                next_number(root),
                specs,
                arrays,
                {**facts, CELLS: {name: cells_checksum(array) for name, array in arrays.items()}},
                identity,
                format="zarr",
                keep=_EVERY_STAGE,
                journal=self._out / "journal.jsonl",
                parents=identity["parents"],
            )
            with failure_logged(f"earlier builds of the {street} were not removed"):
                drop_older(root, 1)
            saver.discard()
        self._progress(name, 1.0)


def _is_begun(path: Path) -> bool:
    """Return whether a directory holds a complete, partial or interrupted build of an abstraction.

    It does if a street's checkpoint is there, or if all its files are those of a build; an empty directory counts.
    """
    ours = {*STREETS, *(f"unfinished-{street}" for street in STREETS), _LOCK, "journal.jsonl"}
    return any(list_checkpoints(path / street) for street in STREETS) or (
        path.is_dir() and all(entry.name in ours or entry.name[:5] == ".tmp-" for entry in path.iterdir())
    )


def _content(stage: Checkpoint) -> str:
    """Return a hash of a street's buckets: checksums of its arrays, its settings and its parents.

    Parents are the adjoining streets whose buckets it was built from.  Building the same buckets again gives the same
    hash.
    """
    return content_hash({CELLS: stated_cells(stage), **stage.identity})


def _table(stage: Checkpoint) -> tuple[NDArray[Any], Table]:
    remembers_too = any(spec.name == HISTORY for spec in stage.specs)
    return stage.read("bucket"), stage.read(HISTORY) if remembers_too else None


def _next_street(stage: Checkpoint) -> NextStreet:
    clustered = any(spec.name == "centres" for spec in stage.specs)
    return NextStreet(
        table=stage.read("bucket"),
        equity=stage.read("equity"),
        hands=stage.read("hands"),
        centres=np.ascontiguousarray(stage.read("centres")) if clustered else None,
        distance=stage.identity["recipe"].get("distance", "l2"),
    )
