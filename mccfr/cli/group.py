"""Group of all commands; slow imports are inside the commands."""

import traceback
from typing import Any

import rich_click as click

from mccfr.cli.abstraction_commands import abstraction
from mccfr.cli.bot_commands import bot, dealer, play
from mccfr.cli.cluster_commands import cluster
from mccfr.cli.experiment_commands import compare, report
from mccfr.cli.exploit_command import exploit
from mccfr.cli.match_commands import match, rank
from mccfr.cli.planning_commands import games, init, plan
from mccfr.cli.progress_display import HistoryCounts
from mccfr.cli.result_commands import evaluate, export, query
from mccfr.cli.review_command import review
from mccfr.cli.run_commands import resume, solve, verify
from mccfr.cli.spot_command import spot, upi
from mccfr.cli.status_commands import status, stop, tensorboard
from mccfr.cli.stopping import stoppable
from mccfr.cli.view_command import view
from mccfr.cli.warmup_command import warmup
from mccfr.common.package import VERSION
from mccfr.trees.history_progress import counts_reported

click.rich_click.TEXT_MARKUP = "rich"
_COMMANDS: dict[str, tuple[click.Command, ...]] = {
    "Before a run": (init, games, plan, warmup),
    "Runs": (solve, spot, upi, resume, status, stop, verify, cluster),
    "Results": (evaluate, exploit, export, query, view, report, compare, tensorboard),
    "At the table": (play, match, rank, bot, dealer, review),
    "Cards": (abstraction,),
}
"""Commands of each section of the help."""
click.rich_click.COMMAND_GROUPS = {
    "mccfr": [
        {"name": title, "commands": [str(command.name) for command in commands]}
        for title, commands in _COMMANDS.items()
    ]
}


class _Commands(click.RichGroup):
    """Group of all commands; prints progress while a game tree is built, and tracebacks.

    Progress is printed if building takes more than two seconds; tracebacks of errors are printed with --traceback.
    """

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with counts_reported(HistoryCounts()):
                return super().invoke(ctx)
        except Exception as error:
            if ctx.params["tracebacks"] and not isinstance(error, click.ClickException | click.exceptions.Exit):
                traceback.print_exception(error)
            raise


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(VERSION, prog_name="mccfr")
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


def _make_stoppable(command: click.Command) -> None:
    """Make signals end a command, or all commands of a group, with a message and an exit status."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            _make_stoppable(each)
        return
    assert command.callback is not None
    command.callback = stoppable(command.callback)


for command in (each for section in _COMMANDS.values() for each in section):
    _make_stoppable(command)
    cli.add_command(command)
