"""Where the export that a configuration asks for goes, and whether it may, said before anything is trained for it."""

from pathlib import Path

from mccfr.config.tables import Config, ExportConfig
from mccfr.games.game import Game
from mccfr.policy.export.formats import PROVENANCE, check_format
from mccfr.policy.replacing import replaceable
from storage.outputs import check_output


def export_path(export: ExportConfig, directory: Path) -> Path:
    """`out`, relative to the current directory; without it beside the run: `RUN-policy`, or `RUN.FORMAT`."""
    if export.out is not None:
        return Path(export.out)
    if directory.name in ("", ".."):
        directory = directory.resolve()
    return directory.with_name(directory.name + ("-policy" if export.format == "policy" else f".{export.format}"))


def check_export(
    config: Config, game: Game, directory: Path, run_id: str | None = None, *, replace: bool = False
) -> None:
    """Raise what the export at the end of a run in a directory would, if that can be known before.

    run_id   the run's; None: there is no such run yet
    replace  an export of another run may be replaced

    That is `ValueError` for a format that the game has not, or a `best` of checkpoints that are not measured and kept,
    `FileExistsError` where something else is at its place.
    """
    export, points = config.export, config.evaluation
    if export is None:
        return
    kept = points.keep and (points.at_nodes or points.at_iterations)
    if export.best is not None and not (kept and export.best in points.chosen):
        raise ValueError(
            f"export.best = {export.best!r} chooses among checkpoints that are measured by it and kept: name it in "
            "evaluation.method, with evaluation.keep = true and points in at_nodes or at_iterations"
        )
    check_format(game, export.format)
    out = export_path(export, directory)
    check_output(out, replaceable(PROVENANCE[export.format], run_id, replace=replace))
