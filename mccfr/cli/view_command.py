"""The command that shows a strategy in a browser: view."""

import os
import sys
from pathlib import Path
from typing import Any

import rich_click as click

from mccfr.cli.progress_display import reporter
from mccfr.cli.shared_options import abstraction_option, code_option, path_type


@click.command("view")
@click.argument("target", metavar="POLICY-or-RUN", type=path_type, required=False)
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0: a free one.")
@click.option("--no-browser", is_flag=True, help="Open no browser, only say the address.")
@click.option("--checkpoint", type=click.IntRange(min=0), help="Of a run; default: the newest.")
@code_option
@abstraction_option
@click.option(
    "--against", metavar="POLICY-or-RUN", type=path_type, help="Shown beside it: a strategy for the same game."
)
@click.option("--against-checkpoint", type=click.IntRange(min=0), help="Of the run in --against; default: the newest.")
@click.option("--against-abstraction", type=path_type, help="Where the abstraction of the run in --against lies.")
@click.option("--review", type=path_type, metavar="FILE", help="Of mccfr review --keep FILE, by this policy.")
def view(target: Path | None, port: int, no_browser: bool, **options: Any) -> None:
    """Look at a policy or a run in a browser, and play against it: ranges, lines, boards, equities, values. Ctrl-C
    stops.

    Spots can be typed there and solved; without POLICY-or-RUN these alone. The page is served to this machine alone,
    and loads nothing from elsewhere.

    Example: mccfr view hunl-quick-policy
    """
    from mccfr.view import open_shelf, serve

    def ready(url: str) -> None:
        click.echo(f"mccfr: {target or 'spots'} at {url} - Ctrl-C stops", err=True)
        if not no_browser and _has_screen():
            import webbrowser  # its import runs programs to find browsers

            webbrowser.open(url)

    with reporter() as report:
        report.phase(f"reading {target or 'nothing'}")
        shelf = open_shelf(target, **options)
    serve(shelf, port, ready=ready)


def _has_screen() -> bool:
    """Return whether a browser opens in a window instead of this terminal."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


COMMANDS = (view,)
"""Commands that the group adds."""
