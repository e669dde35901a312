"""Commands that compare runs, or report on a betting line over many flops: compare, report."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from mccfr.cli.progress_display import reporter
from mccfr.cli.shared_options import (
    NOT_REACHED,
    Share,
    abstraction_option,
    code_option,
    file_or_example,
    force_option,
    path_type,
)
from mccfr.cli.stopping import resumable_command
from mccfr.common.signals import SignalInterrupt

MOST_FLOPS = 1_755

if TYPE_CHECKING:
    from mccfr.experiments.result_table import Curve


@click.command()
@click.argument("experiment", type=path_type)
@click.argument("out", type=path_type)
@click.option("--set", "overrides", multiple=True, metavar="TABLE.KEY=VALUE", help="Override one key of EXPERIMENT.")
@force_option
@resumable_command(lambda out, **_: out, "the same command")
def compare(experiment: Path, out: Path, overrides: tuple[str, ...], force: bool) -> None:
    """Run several variants and seeds of a configuration, and write three tables and a plot.

    EXPERIMENT is a run's TOML file with an additional table [compare], or the name of an example, which is first copied
    to runs/experiments. OUT contains the run directories runs/NAME-SEED, three tables and, with matplotlib, plot.png.
    table.csv has a row for each variant, seed and point: a stage of training at which strategies are evaluated.
    summary.csv has means over seeds and their 95 % intervals, pairs.csv ratios to the first variant, seed by seed.
    Means are geometric. Exception: winnings of responses that give only a lower bound of exploitability have arithmetic
    means, and differences in place of ratios. Each run is the one that `solve` starts: it builds missing card
    abstractions and needs enough memory and disk. Ctrl-C stops with a checkpoint (exit status 75). The same command
    then continues and keeps finished runs.

    Example: mccfr compare runs/experiments/leduc-discounts.toml discounts --set compare.seeds=[0,1]
    """
    from mccfr.config.examples import EXPERIMENTS
    from mccfr.experiments.definition import load_experiment
    from mccfr.experiments.experiment_runs import PLOT, run_experiment
    from mccfr.experiments.plot import ABSENT, can_plot, draw, panels_of
    from mccfr.experiments.result_table import publish

    with file_or_example(experiment, EXPERIMENTS) as file:
        definition = load_experiment(file, overrides)
    with reporter() as report:
        if not can_plot():
            report.message(ABSENT)
        stopped = run_experiment(definition, out, report, force=force)
    all_curves = publish(definition, out)
    if all_curves and can_plot():
        draw(panels_of(definition, all_curves), out / PLOT)
    if stopped is not None:
        raise SignalInterrupt(stopped)
    click.echo(_summary_text(all_curves, definition.axis))


def _summary_text(curves: "Sequence[Curve]", axis: str) -> str:
    """Return a line of text for each curve: its mean at the last point that can be compared.

    A point is a stage of training, such as 1,000,000 nodes. It can be compared if every variant has a value there.

    curves  one for each variant and measure, such as exploitability
    axis    unit of the points, such as "nodes"
    """
    width = max((len(curve.variant) for curve in curves), default=0)
    lines = []
    for curve in curves:
        common = set.intersection(*({*each.point.tolist()} for each in curves if each.measure == curve.measure))
        if not common:
            lines.append(f"{curve.variant:{width}}  {curve.measure}: no point was measured of every variant")
            continue
        point = max(common)
        index = curve.point.tolist().index(point)
        low, high, seeds = curve.low[index], curve.high[index], int(curve.seeds[index])
        band = f" (95 %: {low:.4g} to {high:.4g}, {seeds} seeds)" if seeds > 1 else ""
        lines.append(f"{curve.variant:{width}}  {curve.measure} {curve.mean[index]:.6g}{band} at {point:,.10g} {axis}")
    return "\n".join(lines)


@click.command()
@click.argument("directory", metavar="DIR-or-POLICY", type=path_type)
@click.argument("out", metavar="OUT", type=path_type)
@click.option("--spots", metavar="LINE", required=True, help='Line to the flop: b300c/; of a spot: "".')
@click.option(
    "--flops", type=click.IntRange(1, MOST_FLOPS), default=MOST_FLOPS, show_default=True, help="Number of flops."
)
@click.option("--run-outs", type=click.IntRange(2), help="Run-outs to sample on each flop; default: 10.")
@click.option("--seed", type=click.IntRange(0), help="Seed of the run-outs; default: 0.")
@click.option("--to", type=Share(), help="Exploitability to reach in a spot, of the pot; default: 0.3%.")
@click.option("--workers", type=click.IntRange(1, 1024), default=1, show_default=True, help="Number of processes.")
@click.option("--keep", type=path_type, help="File of finished flops; the same command continues from it.")
@click.option("--checkpoint", type=click.IntRange(min=0), help="Number of the checkpoint; default: the newest.")
@code_option
@abstraction_option
def report(directory: Path, out: Path, spots: str, flops: int, workers: int, keep: Path | None, **how: Any) -> None:
    """Write tables of a betting line on all flops: frequencies, equity, EV and EQR.

    EQR is the EV as a share of the pot, divided by the equity. DIR-or-POLICY is a run or policy of whole hold'em, whose
    strategy is only evaluated. It may also be the run or configuration of a game that begins on a flop with given
    ranges: the command then solves this game on each flop. --spots is the betting line to the decision on the flop, ""
    in the second case. OUT ends in .csv or .html. The tables are by flop, by texture (such as paired flops) and by
    class of hands. A flop that leaves a player without hands is skipped.

    Example: mccfr report hunl-quick-policy flops.html --spots b300c/
    """
    from mccfr.evaluation.samples import Effort
    from mccfr.runs.phases import naming_steps
    from mccfr.runs.results.flop_tables import report_flops, tables_of
    from mccfr.runs.results.targets import Reference
    from mccfr.view.flops_page import FLOPS_PAGE

    target, effort = Reference(directory, how.pop("checkpoint"), how.pop("abstraction")), Effort(workers, keep=keep)
    with reporter() as reported, naming_steps(reported):
        report = report_flops(target, out, spots, flops=flops, effort=effort, page=FLOPS_PAGE, **how)
    result = report.report
    for row in tables_of(result)["textures"]:
        played = ", ".join(f"{action} {row[action]:.1%}" for action in result.actions)
        ev = f"EV {row['ev_oop']:.4g} / {row['ev_ip']:.4g} ± {row['ev_oop_within']:.2g}"
        equity = f"equity {row['equity_oop']:.1%} / {row['equity_ip']:.1%}"
        click.echo(f"{row['by']:>10} {row['texture']:16} {row['share']:6.1%}  {played}; {equity}; {ev}")
    if report.left_out:
        click.echo(f"mccfr: left out, as they leave a range no hand: {', '.join(report.left_out)}", err=True)
    if report.unreached:
        click.echo(f"mccfr: not solved to --to, see exploitability_pot: {', '.join(report.unreached)}", err=True)
        raise click.exceptions.Exit(NOT_REACHED)
