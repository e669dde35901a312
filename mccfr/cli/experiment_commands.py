"""Commands that compare runs, or write a strategy as a page or table: compare, report."""

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
    force_option,
    own_file,
    path_type,
    refuse_given,
)
from mccfr.cli.stopping import goes_on
from mccfr.common.signals import SignalInterrupt
from storage.free_space import bytes_text

MOST_FLOPS = 1_755

if TYPE_CHECKING:
    from mccfr.experiments import Curve
    from mccfr.runs.results.targets import Reference


@click.command()
@click.argument("experiment", type=path_type)
@click.argument("out", type=path_type)
@click.option("--set", "overrides", multiple=True, metavar="TABLE.KEY=VALUE", help="Override one key of EXPERIMENT.")
@force_option
@goes_on(lambda out, **_: out, "the same command")
def compare(experiment: Path, out: Path, overrides: tuple[str, ...], force: bool) -> None:
    """Run several variants and seeds of a configuration, and write one table and one plot.

    EXPERIMENT is a run's TOML file with an additional table [compare], or the name of an example, which is first
    copied to runs/experiments. OUT contains the run directories runs/NAME-SEED, plot.png and three tables. table.csv
    has a row for each variant, seed and point. summary.csv has geometric means over seeds and their 95 % intervals.
    pairs.csv has ratios to the first variant, seed by seed.
    Each run is the one that `solve` starts: it builds abstractions from recipes and needs enough memory and disk.
    Ctrl-C stops with a checkpoint (exit status 75). The same command then continues and keeps finished runs.

    Example: mccfr compare runs/experiments/leduc-discounts.toml discounts --set compare.seeds=[0,1]
    """
    from mccfr.config.examples import EXPERIMENTS
    from mccfr.experiments import load_experiment, publish, run_experiment
    from mccfr.experiments.experiment_runs import PLOT
    from mccfr.experiments.plot import ABSENT, can_plot, draw, panels_of

    with own_file(experiment, EXPERIMENTS) as file:
        described = load_experiment(file, overrides)
    with reporter() as report:
        if not can_plot():
            report.message(ABSENT)
        stopped = run_experiment(described, out, report, force=force)
    found = publish(described, out)
    if found and can_plot():
        draw(panels_of(described, found), out / PLOT)
    if stopped is not None:
        raise SignalInterrupt(stopped)
    click.echo(_summary_text(found, described.axis))


def _summary_text(found: "Sequence[Curve]", axis: str) -> str:
    """Return one line for each curve, at the last point that all curves of its measure have."""
    width = max((len(curve.variant) for curve in found), default=0)
    lines = []
    for curve in found:
        shared = set.intersection(*({*each.point.tolist()} for each in found if each.measure == curve.measure))
        if not shared:
            lines.append(f"{curve.variant:{width}}  {curve.measure}: no point was measured of every variant")
            continue
        point = max(shared)
        place = curve.point.tolist().index(point)
        low, high, seeds = curve.low[place], curve.high[place], int(curve.seeds[place])
        band = f" (95 %: {low:.4g} to {high:.4g}, {seeds} seeds)" if seeds > 1 else ""
        lines.append(f"{curve.variant:{width}}  {curve.measure} {curve.mean[place]:.6g}{band} at {point:,.10g} {axis}")
    return "\n".join(lines)


@click.command()
@click.argument("directory", metavar="DIR-or-POLICY", type=path_type)
@click.argument("out", metavar="OUT", type=path_type)
@click.option("--spots", metavar="LINE", help="Write tables of a line to the flop, for many flops: r300c/.")
@click.option(
    "--flops", type=click.IntRange(1, MOST_FLOPS), help=f"With --spots: how many flops; default: {MOST_FLOPS}."
)
@click.option("--run-outs", type=click.IntRange(2), help="With --spots: run-outs to sample on each flop; default: 10.")
@click.option("--seed", type=click.IntRange(0), help="With --spots: seed of the run-outs; default: 0.")
@click.option("--to", type=Share(), help="With --spots of a spot: exploitability, of the pot; default: 0.3%.")
@click.option("--workers", type=click.IntRange(1, 1024), help="With --spots: processes; default: 1.")
@click.option("--keep", type=path_type, help="With --spots: file of finished flops, to continue from.")
@click.option("--checkpoint", type=click.IntRange(min=0), help="Number of the checkpoint; default: the newest.")
@click.option("--board", "boards", multiple=True, help="Board to show: Qs7h2d; may be repeated.")
@click.option("--boards", "board_count", type=click.IntRange(min=1), help="Boards of each street; default: 6.")
@click.option("--megabytes", type=click.FloatRange(min=0.01), help="Largest file size; default: 6.")
@code_option
@abstraction_option
def report(directory: Path, out: Path, spots: str | None, boards: tuple[str, ...], **options: Any) -> None:
    """Write the strategy of a run or a policy as one HTML file, or a line on all flops as tables.

    The file works offline. It shows ranges as 13x13 grids (hand by hand in small games) for each decision, and the
    curve of a run's evaluations. On later streets it shows --boards sampled boards, or the boards of --board. Whole
    hold'em has the preflop decisions and those on the boards of --board. The most frequent decisions come first, until
    the file has --megabytes.

    With --spots, DIR is a run or policy of whole hold'em and OUT ends in .csv, .parquet or .html. The tables have
    frequencies, equity, EV and EQR by flop, by texture and by class of hands. Nothing is solved. A spot's run or
    configuration that begins on a flop, with the empty line, is solved on each flop. A flop that leaves a player
    without hands is skipped.

    Example: mccfr report runs/subgame subgame.html
    """
    if spots is not None:
        refuse_given("with --spots", "boards", "board_count", "megabytes")
        _drop(options, "board_count", "megabytes")
        from mccfr.runs.results.targets import Reference

        target = Reference(directory, options.pop("checkpoint"), options.pop("abstraction"))
        _report_flops(target, out, spots, **options)
        return
    refuse_given("without --spots", *_OF_SPOTS)
    _drop(options, *_OF_SPOTS)
    from mccfr.report import write_report

    if (megabytes := options.pop("megabytes")) is not None:
        options["limit_bytes"] = int(megabytes * 1e6)
    given = {name: value for name, value in options.items() if value is not None}
    counts = write_report(directory, out, boards=boards, **given)
    rest = "" if counts["complete"] else " (the most played; --megabytes makes room for more)"
    click.echo(f"wrote {out}: {counts['decisions']:,} decisions{rest}, {bytes_text(counts['bytes'])}", err=True)


_OF_SPOTS = "flops", "run_outs", "seed", "to", "workers", "keep"


def _drop(options: dict[str, Any], *names: str) -> None:
    """Take options that were not given out of all."""
    for name in names:
        del options[name]


def _report_flops(
    target: "Reference", out: Path, line: str, *, flops: int | None, workers: int | None, keep: Path | None, **how: Any
) -> None:
    from mccfr.evaluation.samples import Effort
    from mccfr.report.flops import FLOPS_PAGE
    from mccfr.runs.phases import naming_steps
    from mccfr.runs.results.flop_tables import report_flops, tables_of

    count, effort = flops or MOST_FLOPS, Effort(workers or 1, keep=keep)
    with reporter() as reported, naming_steps(reported):
        made = report_flops(target, out, line, flops=count, effort=effort, page=FLOPS_PAGE, **how)
    found = made.report
    for row in tables_of(found)["textures"]:
        played = ", ".join(f"{action} {row[action]:.1%}" for action in found.actions)
        ev = f"EV {row['ev_oop']:.4g} / {row['ev_ip']:.4g} ± {row['ev_oop_within']:.2g}"
        equity = f"equity {row['equity_oop']:.1%} / {row['equity_ip']:.1%}"
        click.echo(f"{row['by']:>10} {row['texture']:16} {row['share']:6.1%}  {played}; {equity}; {ev}")
    if made.left_out:
        click.echo(f"mccfr: left out, as they leave a range no hand: {', '.join(made.left_out)}", err=True)
    if made.unreached:
        click.echo(f"mccfr: not solved to --to, see exploitability_pot: {', '.join(made.unreached)}", err=True)
        raise click.exceptions.Exit(NOT_REACHED)


COMMANDS = (compare, report)
