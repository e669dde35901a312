"""The command that compiles kernels beforehand: warmup."""

from collections.abc import Mapping
from typing import Any

import rich_click as click

from mccfr.cli.progress_display import reporter
from mccfr.cli.shared_options import answer, json_option
from storage.free_space import bytes_text


@click.command()
@click.argument("target", metavar="[RECIPE|BOARD|POLICY|all]", default="all")
@json_option
def warmup(target: str, as_json: bool) -> None:
    """Compile kernels beforehand, so that later commands answer at once.

    Each version of the program compiles its kernels once. Use this command while a container is built, or on a file
    system that machines share. RECIPE is a configuration or an example (kuhn, hunl-quick) and prepares solve. BOARD
    prepares spot for its street. POLICY prepares play and bot with --resolve. "all" prepares examples and spots.

    Example: mccfr warmup QsJh2h
    """
    from mccfr.api.kernel_warmup import warm_up
    from mccfr.runs.phases import naming_phases

    with reporter() as report, naming_phases(report) as phases:
        result = warm_up(target, phases.message)
    answer(result, as_json, _text)


def _text(result: Mapping[str, Any]) -> str:
    """Return as one line the number of kernels compiled now, and the folder, number and size of all."""
    size, compiled = bytes_text(result["bytes"]), result["compiled"]
    return f"{compiled} kernels compiled; {result['directory']} holds {result['kernels']} kernels, {size}"
