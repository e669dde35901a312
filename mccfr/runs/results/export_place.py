"""Path of a configured export, and the checks of it before training."""

from pathlib import Path

from mccfr.config.run_tables import Config, ExportConfig
from mccfr.games.game import Game
from mccfr.policy.export.export_formats import PROVENANCE, check_format
from mccfr.policy.overwrite import replaceable
from storage.atomic_outputs import check_output


def export_path(export: ExportConfig, directory: Path) -> Path:
    """Return `out`, relative to the current directory, or by default `RUN-policy` or `RUN.FORMAT`."""
    if export.out is not None:
        return Path(export.out)
    if directory.name in ("", ".."):
        directory = directory.resolve()
    return directory.with_name(directory.name + ("-policy" if export.format == "policy" else f".{export.format}"))


def check_export(
    config: Config, game: Game, directory: Path, run_id: str | None = None, *, replace: bool = False
) -> None:
    """Raise the errors of the export at the end of a run that are known in advance.

    run_id   id of the run; None: it does not exist yet
    replace  allow to replace another run's export

    `ValueError`: a format that the game lacks, or a `best` of checkpoints that are not measured and kept.
    `FileExistsError`: the path is taken.
    """
    export, points = config.export, config.evaluation
    if export is None:
        return
    kept = points.keep and (points.at_nodes or points.at_iterations)
    if export.best is not None and not (kept and export.best in points.chosen):
        raise ValueError(
            f"export.best = {export.best!r} chooses among checkpoints that are measured by it and kept: name it in "
            "evaluation.methods, with evaluation.keep = true and points in at_nodes or at_iterations"
        )
    check_format(game, export.format)
    out = export_path(export, directory)
    check_output(out, replaceable(PROVENANCE[export.format], run_id, replace=replace))
