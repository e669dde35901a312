"""A figure of an abstraction's quality report: each street's buckets by mean equity and size."""

import io
from pathlib import Path

from abstraction.buckets import Abstraction
from storage import durable
from storage.outputs import check_output, contains, output

_MANY = 5_000  # buckets from which points are drawn small
_MARK = "mccfr abstraction"
_MARKED = {".png": "Software", ".svg": "Creator", ".pdf": "Creator", ".ps": "Creator", ".eps": "Creator"}
"""Under which key of its metadata a format says what has made the file."""
_MOST_BYTES = 1 << 24


def draw_report(abstraction: Abstraction, path: Path) -> None:
    """Write the figure to `path`, in the format that its ending names, such as .png, .svg or .pdf.

    One panel a street: a point for each bucket, its mean equity and the hands that it holds.  An earlier figure is
    replaced, as far as its format has room to say that it is one.  Raises `ValueError` where matplotlib is missing, or
    does not know the ending, `FileExistsError` where something else is at `path`.
    """
    is_figure = contains(_MARK.encode(), _MOST_BYTES)
    check_output(path, is_figure)
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError("figures need matplotlib: install it with the extra 'plot', as in mccfr[plot]") from None
    figure = Figure(figsize=(11, 8), layout="constrained")
    known = FigureCanvasAgg(figure).get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        raise ValueError(f"{path}: figures end in one of: {', '.join('.' + name for name in sorted(known))}")
    info = abstraction.info()
    panels = figure.subplots(2, 2).flat
    for axes in panels[len(abstraction.streets) :]:
        axes.set_visible(False)
    for axes, street in zip(panels, abstraction.streets, strict=False):
        hands, equity = abstraction.sizes(street)
        facts = info[street]
        many = len(hands) > _MANY
        axes.plot(equity, hands, "." if not many else ",", alpha=0.5, markersize=4, rasterized=many)
        axes.set(xlim=(0, 1), yscale="log", xlabel="mean equity of the bucket", ylabel="hands in the bucket")
        axes.set_title(
            f"{street}: {facts['buckets']:,} from {facts['recipe']['features']}\n"
            f"{facts['explained']:.2%} of the variance explained, equity spread {facts['equity_spread']:.4f}",
            fontsize=10,
        )
    key, drawn = _MARKED.get(path.suffix.lower()), io.BytesIO()
    figure.savefig(drawn, format=path.suffix[1:], dpi=120, metadata=None if key is None else {key: _MARK})
    with output(path, is_figure) as temporary:
        durable.write_file(temporary, drawn.getvalue())
