"""The command that shows a strategy in a browser: view."""

import os
import sys
from pathlib import Path
from typing import Any

import rich_click as click

from mccfr.cli.progress_display import reporter
from mccfr.cli.shared_options import abstraction_option, code_option, path_type, refuse_options_without_effect


@click.command("view")
@click.argument("target", metavar="POLICY-or-RUN", type=path_type, required=False)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="Port of the page; 0: any free port."
)
@click.option("--no-browser", is_flag=True, help="Print the address without opening a browser.")
@click.option("--checkpoint", type=click.IntRange(min=0), help="Number of the checkpoint; default: the newest.")
@code_option
@abstraction_option
@click.option(
    "--against", metavar="POLICY-or-RUN", type=path_type, help="Second strategy for the same game, to compare with."
)
@click.option("--against-checkpoint", type=click.IntRange(min=0), help="--checkpoint of the run in --against.")
@click.option("--against-abstraction", type=path_type, help="--abstraction of the run in --against.")
@click.option("--review", type=path_type, metavar="FILE", help="Show the hands of mccfr review --keep FILE.")
def view(target: Path | None, port: int, no_browser: bool, **options: Any) -> None:
    """Show a policy or a run in a browser, and play against it; Ctrl-C stops.

    The page shows ranges, betting lines, boards, equities and EV. It also solves games that you type in: ranges, board,
    pot, stacks and bet sizes. Without POLICY-or-RUN it does only that. Only this machine can open the page, and the
    page loads nothing from the internet.

    Example: mccfr view hunl-quick-policy
    """
    from mccfr.view import open_strategies, serve

    if target is None:
        refuse_options_without_effect("without POLICY-or-RUN", "checkpoint", "abstraction", "against", "review")
    if options["against"] is None:
        refuse_options_without_effect("without --against", "against_checkpoint", "against_abstraction")

    def ready(url: str) -> None:
        click.echo(f"mccfr: {target or 'spots'} at {url} - Ctrl-C stops", err=True)
        if not no_browser and _has_screen():
            import webbrowser  # its import runs programs to find browsers

            webbrowser.open(url)

    with reporter() as report:
        report.phase(f"reading {target or 'nothing'}")
        shelf = open_strategies(target, **options)
    serve(shelf, port, ready=ready)


def _has_screen() -> bool:
    """Return True if a browser can open in a window, False if it would open in this terminal."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
