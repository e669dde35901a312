"""Plots the curves of an experiment, such as exploitability over iterations, as a PNG file.

Bands are 95 % intervals over seeds.  Needs matplotlib (the extra `plot`).
"""

import importlib.util
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mccfr.experiments.definition import AXES, MEASURES, Experiment
from mccfr.experiments.result_table import Curve
from storage import durable

ABSENT = (
    "plots need matplotlib, which is not installed: get the extra `plot` (tools/bootstrap plot, or pip install "
    "'mccfr[plot]'); tables are written without it"
)

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#8b5a2b")
"""Palette for colour-blind readers (Okabe & Ito), with a grey and a brown."""
_STYLES = ("-", "--", "-.", ":")
_AXIS_LABELS = {"iterations": "iterations", "nodes": "nodes touched", "seconds": "training time (s)"}
_PANEL_INCHES = (6.4, 4.4)
_DPI = 100
_MARGIN = 2.0  # factor between the means and the ends of a logarithmic axis
_LEAST_ROOM = 0.1  # margin of a linear axis, at least this share of the largest mean


@dataclass(frozen=True)
class Panel:
    """One diagram of a figure: curves of one measure, such as exploitability, over one x axis.

    title    text above the diagram
    axis     x axis: "iterations", "nodes" or "seconds"
    measure  name of the quantity on the y axis, such as "exploitability_mbb" (a key of MEASURES)
    curves   one for each variant
    """

    title: str
    axis: str
    measure: str
    curves: Sequence[Curve]


def panels_of(experiment: Experiment, curves: Sequence[Curve]) -> list[Panel]:
    """Return one panel (diagram) for each measure, with the curves of all variants."""
    measures = dict.fromkeys(curve.measure for curve in curves)
    return [
        Panel(experiment.title, experiment.axis, measure, [c for c in curves if c.measure == measure])
        for measure in measures
    ]


def can_plot() -> bool:
    """Return whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def draw(panels: Sequence[Panel], path: Path, columns: int = 1) -> None:
    """Draw panels into one PNG file, `columns` of them side by side; replace the file atomically.

    Raises `ValueError` without matplotlib, and `OSError` if writing fails.
    """
    if not can_plot():
        raise ValueError(ABSENT)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = -(-len(panels) // columns)
    figure = Figure((columns * _PANEL_INCHES[0], rows * _PANEL_INCHES[1]), dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    styles: dict[str, int] = {}
    for number, panel in enumerate(panels):
        _draw_panel(figure.add_subplot(rows, columns, number + 1), panel, styles)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", metadata={"Software": None})
    durable.replace_file(path, drawn.getvalue())


def _draw_panel(axes: Any, panel: Panel, styles: dict[str, int]) -> None:
    """Draw the curves of one diagram on matplotlib axes.

    styles  {variant: index of its colour and line style}, shared by all diagrams of a figure; new variants are added
    """
    measure = MEASURES[panel.measure]
    for curve in panel.curves:
        number = styles.setdefault(curve.variant, len(styles))
        look = {"color": _COLOURS[number % len(_COLOURS)], "linestyle": _STYLES[number % len(_STYLES)]}
        x, above = curve.axes[AXES[panel.axis]], np.ones(len(curve.mean), bool) if measure.linear else curve.mean > 0
        marker = "o" if above.sum() == 1 else None
        axes.plot(x[above], curve.mean[above], label=curve.variant, linewidth=1.5, marker=marker, **look)
        banded = above & ~np.isnan(curve.low)
        if banded.any():
            band = {"alpha": 0.18, "linewidth": 0, "color": look["color"]}
            axes.fill_between(x[banded], curve.low[banded], curve.high[banded], **band)
    means = np.concatenate([curve.mean for curve in panel.curves] or [np.ones(0)])
    axes.set_xscale("log")
    if not measure.linear:
        axes.set_yscale("log")
        means = means[means > 0]
        if means.size:  # limits follow the means, because intervals of two seeds may span many powers of ten
            axes.set_ylim(means.min() / _MARGIN, means.max() * _MARGIN)
    elif means.size:
        room = max(np.ptp(means), _LEAST_ROOM * np.abs(means).max())
        axes.set_ylim(means.min() - room, means.max() + room)
    axes.set_xlabel(_AXIS_LABELS[panel.axis])
    axes.set_ylabel(measure.label)
    if panel.curves:
        axes.legend(fontsize="small", framealpha=0.8)
    axes.set_title(panel.title, fontsize="medium")
    axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
