"""Commands that compare runs, or write a strategy as a page or table: compare, report."""

from collections.abc import Mapping, Sequence
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

    EXPERIMENT is a run's TOML file that also has a table named compare, or the name of an example, which is copied
    to runs/experiments first. OUT gets runs/NAME-SEED, ordinary run directories; table.csv with a row for each
    variant, seed and point; summary.csv with geometric means over seeds and their 95 % intervals; pairs.csv with
    ratios to the first variant, seed by seed; and plot.png.
    Each run is the one that solve makes of its configuration: abstractions are built from their recipes, and a run
    that would find too little memory or disk is refused. Ctrl-C stops with a checkpoint (exit status 75); the same
    command goes on, and leaves finished runs alone.

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
@click.option("--spots", metavar="LINE", help="A line that ends on the flop, on one flop after another: r300c/.")
@click.option("--flops", type=click.IntRange(1, MOST_FLOPS), help=f"With --spots: how many; default: {MOST_FLOPS}.")
@click.option("--run-outs", type=click.IntRange(2), help="With --spots: drawn on each flop, for EV; default: 10.")
@click.option("--seed", type=click.IntRange(0), help="Of these; default: 0.")
@click.option("--to", type=Share(), help="With --spots of a spot: how exploitable, of the pot; default: 0.3%.")
@click.option("--workers", type=click.IntRange(1, 1024), help="With --spots: processes; default: 1.")
@click.option("--keep", type=path_type, help="With --spots: a file of finished flops, to go on from.")
@click.option("--checkpoint", type=click.IntRange(min=0), help="Number of the checkpoint; default: the newest.")
@click.option("--board", "boards", multiple=True, help="A board to show: Qs7h2d; as often as wanted.")
@click.option("--boards", "board_count", type=click.IntRange(min=1), help="Of a street; default: 6.")
@click.option("--megabytes", type=click.FloatRange(min=0.01), help="Largest size; default: 6.")
@code_option
@abstraction_option
def report(directory: Path, out: Path, spots: str | None, boards: tuple[str, ...], **options: Any) -> None:
    """Write the strategy of a run or a policy as one HTML file that works offline; or a line on all flops, as tables.

    Ranges are shown as a 13x13 grid (hand by hand in small games), decision by decision along the betting, with the
    curve of a run's evaluations and facts. On later streets, --boards boards are in it, or those given by --board;
    of whole hold'em, the decisions before the flop and those on boards given. The most played decisions come first
    until --megabytes are full.

    With --spots, DIR is a run or policy of whole hold'em and OUT ends in .csv, .parquet or .html: frequencies, equity,
    EV and EQR by flop, beside it by texture and by class of hands. Nothing is solved. A spot's run or configuration
    that begins on a flop, with the empty line, is solved on each flop; one that leaves a range no hand is left out.

    Example: mccfr report runs/subgame subgame.html
    """
    if spots is not None:
        _refuse_given("with --spots", {"board": boards or None} | _taken(options, "board_count", "megabytes"))
        from mccfr.runs.results.targets import Reference

        target = Reference(directory, options.pop("checkpoint"), options.pop("abstraction"))
        _report_flops(target, out, spots, **options)
        return
    _refuse_given("without --spots", _taken(options, "flops", "run_outs", "seed", "to", "workers", "keep"))
    from mccfr.report import write_report

    if (megabytes := options.pop("megabytes")) is not None:
        options["limit_bytes"] = int(megabytes * 1e6)
    given = {name: value for name, value in options.items() if value is not None}
    counts = write_report(directory, out, boards=boards, **given)
    rest = "" if counts["complete"] else " (the most played; --megabytes makes room for more)"
    click.echo(f"wrote {out}: {counts['decisions']:,} decisions{rest}, {bytes_text(counts['bytes'])}", err=True)


def _taken(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Remove the named options from `options` and return them."""
    return {name: options.pop(name) for name in names}


def _refuse_given(where: str, options: Mapping[str, Any]) -> None:
    """Raise `ValueError` for an option that was given (not None) but has no effect."""
    for name, given in options.items():
        if given is not None:
            option = {"board_count": "boards"}.get(name, name).replace("_", "-")
            raise ValueError(f"--{option} has no effect {where}: leave it out")


def _report_flops(
    target: "Reference", out: Path, line: str, *, flops: int | None, workers: int | None, keep: Path | None, **how: Any
) -> None:
    from mccfr.evaluation.samples import Effort
    from mccfr.report.flops import FLOPS_PAGE
    from mccfr.runs.results.flop_tables import report_flops, subset_errors, tables_of

    count, effort = flops or MOST_FLOPS, Effort(workers or 1, keep=keep)
    with reporter() as reported:

        def progress(done: int, count: int) -> None:
            reported.phase(f"flop {done:,} of {count:,}", done / count)

        made = report_flops(target, out, line, flops=count, effort=effort, page=FLOPS_PAGE, progress=progress, **how)
    found = made.report
    for row in tables_of(found)["textures"]:
        played = ", ".join(f"{action} {row[action]:.1%}" for action in found.actions)
        ev = f"EV {row['ev_oop']:.4g} / {row['ev_ip']:.4g} ± {row['ev_oop_within']:.2g}"
        equity = f"equity {row['equity_oop']:.1%} / {row['equity_ip']:.1%}"
        click.echo(f"{row['by']:>10} {row['texture']:16} {row['share']:6.1%}  {played}; {equity}; {ev}")
    if len(found.flops.cards) == MOST_FLOPS:
        for subset, apart in subset_errors(found).items():
            told_apart = (
                f"EV {apart['ev']:.2g} chips, equity {apart['equity']:.2%}, frequencies {apart['frequency']:.2%}"
            )
            click.echo(f"{subset} flops would be off by: {told_apart}")
    if made.left_out:
        click.echo(f"mccfr: left out, as they leave a range no hand: {', '.join(made.left_out)}", err=True)
    if made.unreached:
        click.echo(f"mccfr: not solved to --to, see exploitability_pot: {', '.join(made.unreached)}", err=True)
        raise click.exceptions.Exit(NOT_REACHED)


COMMANDS = (compare, report)
