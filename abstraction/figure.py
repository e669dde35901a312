"""A figure of an abstraction's quality report: each street's buckets by mean equity and size."""

from pathlib import Path

from abstraction.buckets import Abstraction

_MANY = 5_000  # buckets from which points are drawn small


def draw_report(abstraction: Abstraction, path: Path) -> None:
    """Write the figure to `path`, in the format that its ending names, such as .png, .svg or .pdf.

    One panel a street: a point for each bucket, its mean equity and the hands that it holds.  Raises `ValueError` where
    matplotlib is missing, or does not know the ending.
    """
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
    figure.savefig(path, dpi=120)
