"""Path of a configured export, and the checks of it before training."""

from pathlib import Path

from mccfr.config.run_tables import Config, ExportConfig
from mccfr.games.game import Game
from mccfr.policy.export.export_formats import PROVENANCE, check_format
from mccfr.policy.overwrite import replaceable
from storage.atomic_outputs import check_output


def export_path(export: ExportConfig, directory: Path) -> Path:
    """Return the path at which a run writes the export of its `[export]` table.

    It is the key `out`, relative to the current directory. Without that key it is RUN-policy beside the run's directory
    RUN.
    """
    if export.out is not None:
        return Path(export.out)
    if directory.name in ("", ".."):
        directory = directory.resolve()
    return directory.with_name(f"{directory.name}-policy")


def check_export(
    config: Config, game: Game, directory: Path, run_id: str | None = None, *, replace: bool = False
) -> None:
    """Check, before training, that a run can write its `[export]` table's policy at its end.

    directory  directory of the run, existing or not
    run_id     id of the run; None: it does not exist yet
    replace    allow to replace another run's export

    Without an `[export]` table nothing is checked. Raises `ValueError` if the policy format does not support the game.
    Raises `FileExistsError` if the path holds anything but this run's earlier export, or with `replace` any policy. An
    empty file or directory is allowed.
    """
    export = config.export
    if export is None:
        return
    check_format(game, "policy")
    out = export_path(export, directory)
    check_output(out, replaceable(PROVENANCE["policy"], run_id, replace=replace))
