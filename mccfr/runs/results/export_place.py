"""Path of a configured export, and the checks of it before training."""

from pathlib import Path

from mccfr.config.run_tables import Config, ExportConfig
from mccfr.games.game import Game
from mccfr.policy.export.export_formats import PROVENANCE, check_format
from mccfr.policy.overwrite import replaceable
from storage.atomic_outputs import check_output


def export_path(export: ExportConfig, directory: Path) -> Path:
    """Return a run's export path: `out` from the current directory, or RUN-policy beside the run."""
    if export.out is not None:
        return Path(export.out)
    if directory.name in ("", ".."):
        directory = directory.resolve()
    return directory.with_name(f"{directory.name}-policy")


def check_export(
    config: Config, game: Game, directory: Path, run_id: str | None = None, *, replace: bool = False
) -> None:
    """Check the configured export at the end of a run, as far as possible before training.

    run_id   id of the run; None: it does not exist yet
    replace  allow to replace another run's export

    Raises `ValueError` if the game has no policies, and `FileExistsError` if the export's path is taken.
    """
    export = config.export
    if export is None:
        return
    check_format(game, "policy")
    out = export_path(export, directory)
    check_output(out, replaceable(PROVENANCE["policy"], run_id, replace=replace))
