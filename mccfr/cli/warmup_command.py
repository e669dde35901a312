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

    Kernels are the functions that do the computing. Each version of the program compiles them once. Use this command
    while a container is built, or on a file system that machines share. RECIPE is a run's TOML file or an example
    (kuhn, hunl-quick): compile what `solve` needs for it. BOARD: for `spot` on boards of so many cards. POLICY: for
    `play` and `bot` with --resolve. "all": for kuhn, leduc and hunl-quick, and for `spot` on every street.

    Example: mccfr warmup QsJh2h
    """
    from mccfr.api.kernel_warmup import warm_up
    from mccfr.runs.phases import naming_phases

    with reporter() as report, naming_phases(report) as phases:
        result = warm_up(target, phases.message)
    answer(result, as_json, _text)


def _text(result: Mapping[str, Any]) -> str:
    """Return one line of text: number of kernels compiled now; folder, number and bytes of all.

    result  fields that --json prints
    """
    size, compiled = bytes_text(result["bytes"]), result["compiled"]
    return f"{compiled} kernels compiled; {result['directory']} holds {result['kernels']} kernels, {size}"
