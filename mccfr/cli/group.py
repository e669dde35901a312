"""Group of all commands; slow imports are inside the commands."""

import traceback
from typing import Any

import rich_click as click

from mccfr import __version__
from mccfr.cli import (
    abstraction_commands,
    bot_commands,
    cluster_commands,
    experiment_commands,
    exploit_command,
    match_commands,
    planning_commands,
    result_commands,
    review_command,
    run_commands,
    spot_command,
    status_commands,
    upi_command,
    view_command,
)
from mccfr.cli.progress_display import HistoryCounts
from mccfr.cli.stopping import stoppable
from mccfr.trees.history_progress import counts_reported

click.rich_click.TEXT_MARKUP = "rich"
click.rich_click.COMMAND_GROUPS = {
    "mccfr": [
        {"name": "Before a run", "commands": ["init", "games", "plan"]},
        {"name": "Runs", "commands": ["solve", "spot", "upi", "resume", "status", "stop", "verify", "cluster"]},
        {
            "name": "Results",
            "commands": ["evaluate", "exploit", "export", "query", "view", "report", "compare", "tensorboard"],
        },
        {"name": "At the table", "commands": ["play", "match", "rank", "bot", "dealer", "review"]},
        {"name": "Cards", "commands": ["abstraction"]},
    ]
}


class _Commands(click.RichGroup):
    """Command group that reports long compilations of games, and prints tracebacks with --traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with counts_reported(HistoryCounts()):
                return super().invoke(ctx)
        except Exception as error:
            if ctx.params["tracebacks"] and not isinstance(error, click.ClickException | click.exceptions.Exit):
                traceback.print_exception(error)
            raise


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="mccfr")
@click.option("--traceback", "tracebacks", is_flag=True, help="Print Python's traceback before an error message.")
def cli(tracebacks: bool) -> None:
    """Compute equilibrium strategies of imperfect-information games, from Kuhn poker to no-limit hold'em.

    The algorithm is Monte Carlo counterfactual regret minimisation (MCCFR). One TOML file describes a run: game,
    solver, limits. Examples are included; name them without a path. Try:

    \b
        mccfr solve kuhn                     train in runs/kuhn; Ctrl-C stops; repeat to continue
        mccfr evaluate runs/kuhn             exploitability of the newest checkpoint
        mccfr export runs/kuhn kuhn-policy   the average strategy as plain files
        mccfr query kuhn-policy "" --hand K  strategy with the king, first to act

    Exit status: 0: done. 2: bad input. 3: done, but the target of --to was not reached. 75: a signal stopped training;
    the same command continues it. 128 + N: signal N stopped another command (Ctrl-C: 130). 1: any other error. Signals
    are SIGHUP, SIGINT, SIGTERM and SIGUSR1. Signals within a second of the first count as one.
    """
    del tracebacks  # read by `_Commands.invoke`


def _heeding(command: click.Command) -> None:
    """Replace a command's callback, or those of a group, by one that signals can end."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            _heeding(each)
        return
    assert command.callback is not None
    command.callback = stoppable(command.callback)


_ROOMS = (
    planning_commands,
    run_commands,
    spot_command,
    status_commands,
    cluster_commands,
    result_commands,
    exploit_command,
    match_commands,
    bot_commands,
    review_command,
    view_command,
    upi_command,
    experiment_commands,
    abstraction_commands,
)
for command in [each for room in _ROOMS for each in room.COMMANDS]:
    _heeding(command)
    cli.add_command(command)
