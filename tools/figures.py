"""Runs an experiment of the papers and writes CSV and PNG: `figures.py NAME`.

`figures_catalogue.py` defines the experiments.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import rich_click as click
from figures_averages import AVERAGES, averages_lines
from figures_bounds import BOUNDS, make_bounds
from figures_catalogue import CATALOGUE, CLOCK, EXAMPLE, SIZES, Comparison, PaperFigure, Request, clock_game
from figures_clock import POINTS, SECONDS, make_clock
from figures_example import make_example

from mccfr.cli.progress_display import reporter
from mccfr.experiments.definition import Experiment, directory_name, experiment_from
from mccfr.experiments.experiment_runs import run_experiment
from mccfr.experiments.plot import ABSENT, Panel, can_plot, draw
from mccfr.experiments.result_table import Curve, publish, write_csv

ROOT = Path(__file__).resolve().parent.parent
RATIOS = "ratios.csv"
_CLOSE = 1.001  # tolerance, because points in nodes may differ by one iteration between runs


def ratio(comparison: Comparison, curves: Sequence[Curve], measure: str) -> float | None:
    """Return the geometric mean of worse / better over the comparison's common points; None if none."""
    found = {curve.variant: curve for curve in curves if curve.measure == measure}
    if comparison.better not in found or comparison.worse not in found:
        return None
    better, worse = found[comparison.better], found[comparison.worse]
    _, mine, other = np.intersect1d(better.point, worse.point, return_indices=True)
    inside = (better.point[mine] * _CLOSE >= comparison.first) & (better.point[mine] <= comparison.last * _CLOSE)
    values = worse.mean[other[inside]], better.mean[mine[inside]]
    if not inside.any() or not all(np.all(side > 0) for side in values):
        return None
    return float(np.exp(np.mean(np.log(values[0] / values[1]))))


def compare_curves(figure: PaperFigure, curves: Mapping[str, Sequence[Curve]], out: Path) -> list[str]:
    """Write the figure's comparisons as CSV; return them as lines of text."""
    lines, table = [], [["experiment", "measure", "better", "worse", "first", "last", "ratio"]]
    for name, found in curves.items():
        for measure in dict.fromkeys(view.measure for view in figure.views if view.experiment == name):
            for one in figure.comparisons:
                value = ratio(one, found, measure)
                if value is None:
                    continue
                shown = [measure, one.better, one.worse, f"{one.first:g}", f"{one.last:g}", f"{value:.4g}"]
                table.append([name, *shown])
                where = f"{name}, {measure}, points {one.first:g} to {one.last:g}"
                lines.append(f"{one.worse} / {one.better} = {value:.3g}  ({where})")
    write_csv(out / RATIOS, table)
    return lines


def panels_of(
    figure: PaperFigure, experiments: Mapping[str, Experiment], curves: Mapping[str, Sequence[Curve]]
) -> list[Panel]:
    """Return the figure's panels."""
    panels = []
    for view in figure.views:
        chosen = [curve for curve in curves[view.experiment] if curve.measure == view.measure]
        title = experiments[view.experiment].title or figure.title
        panels.append(Panel(title, view.axis, view.measure, chosen))
    return panels


def make(name: str, request: Request, out: Path) -> None:
    """Train all unfinished runs of a figure, then write its tables and plot; status 75 after a signal."""
    figure = CATALOGUE[name].make(request)
    experiments = {
        part: experiment_from(document, ROOT, f"{name}, {part}") for part, document in figure.experiments.items()
    }
    curves: dict[str, Sequence[Curve]] = {}
    stopped = None
    for part, experiment in experiments.items():
        folder = out / directory_name(part)
        if stopped is None:
            with reporter() as report:
                report.message(f"{name}: {part}, {len(experiment.variants)} variants")
                stopped = run_experiment(experiment, folder, report)
        curves[part] = publish(experiment, folder) if folder.is_dir() else []
    for line in compare_curves(figure, curves, out):
        click.echo(line)
    if can_plot():
        draw(panels_of(figure, experiments, curves), out / f"{name}.png", figure.columns)
    if stopped is not None:
        click.echo(f"stopped by signal {stopped}; the same command continues", err=True)
        sys.exit(75)
    click.echo(f"wrote {out}", err=True)


def _names() -> str:
    lines = [f"  {name:16}{entry.title}" for name, entry in CATALOGUE.items()]
    lines.append(f"  {EXAMPLE:16}D section 3: payoffs 0, 1 and -1,000,000")
    lines.append(f"  {', '.join(CLOCK)}: a game by every algorithm, over processor time")
    lines.append(f"  {BOUNDS:16}lower bounds of exploitability of the runs of --run, over nodes touched")
    return "\n".join([*lines, f"  {AVERAGES:16}distances between the averages of deep CFR runs named by --run"])


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--size", default="small", show_default=True, type=click.Choice(SIZES), help="small takes minutes.")
@click.option("--out", type=click.Path(path_type=Path), help="Directory; default: runs/figures/NAME-SIZE.")
@click.option("--games", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Has subgame1.txt etc.")
@click.option("--workers", type=click.IntRange(0, 1024), help="Threads, or processes of sampled runs; 0: this process.")
@click.option("--seconds", type=click.FloatRange(0.01), help="Processor time per algorithm.")
@click.option("--seeds", default=1, show_default=True, type=click.IntRange(1), help="Per sampling algorithm.")
@click.option("--run", "runs", multiple=True, type=click.Path(path_type=Path), help="A finished run; may be repeated.")
@click.option("--points", default=POINTS, show_default=True, type=click.IntRange(2), help="Points per algorithm.")
@click.option("--only", help="Only algorithms with this text in their names, in figures over time.")
def main(
    name: str,
    size: str,
    out: Path | None,
    games: Path | None,
    workers: int | None,
    seconds: float | None,
    seeds: int,
    runs: tuple[Path, ...],
    points: int,
    only: str | None,
) -> None:
    """Run the experiment NAME of the papers; the same command again continues a stopped one.

    `list` as NAME prints all experiments. Runs, table.csv and summary.csv of each experiment, ratios.csv and NAME.png
    are written to the directory. Subgames 1 to 4 are files of the LibratusEndgames collection in the directory --games;
    without it the shipped endgames are used. Figures over processor time take --seconds, --seeds, --points and --only.
    """
    if name == "list":
        click.echo(_names())
        return
    if name not in CATALOGUE and name not in (EXAMPLE, BOUNDS, AVERAGES, *CLOCK):
        raise click.UsageError(f"there is no figure {name!r}; the figures are:\n{_names()}")
    out = out or ROOT / "runs" / "figures" / f"{name}-{size}"
    if not can_plot():
        click.echo(ABSENT, err=True)
    try:
        if name == EXAMPLE:
            for variant, first in make_example(out):
                click.echo(f"{variant}: {'not yet' if first is None else f'{first:,}'}")
        elif name == AVERAGES:
            click.echo("\n".join(line for run in runs for line in averages_lines(run)))
        elif name == BOUNDS:
            for line in make_bounds(runs, out):
                click.echo(line)
        elif name in CLOCK:
            document, title = clock_game(name, Request(size, games, workers))
            spent = seconds or SECONDS[size]
            for line in make_clock(name, document, title, spent, out, seeds, points=points, only=only):
                click.echo(line)
        else:
            make(name, Request(size, games, workers), out)
    except (ValueError, OSError, MemoryError) as error:
        refusal = click.ClickException(str(error))
        refusal.exit_code = 2
        raise refusal from None


if __name__ == "__main__":
    main()
