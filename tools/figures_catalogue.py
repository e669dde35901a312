"""Experiments of the papers as data: runs, panels of the plots, and comparisons of curves.

* D: Brown & Sandholm 2019, Solving imperfect-information games via discounted regret minimization.
* P: Brown & Sandholm 2015, Regret-based pruning in extensive-form games.
* N: newer variants: Xu et al. 2024, Zhang, McAleer & Sandholm 2026 (`mccfr/solvers/variants.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from figures_clock import LEDUC_12, twin

Document = dict[str, Any]

SHIPPED = Path(__file__).resolve().parent.parent / "runs" / "games"
SIZES = ("small", "paper")
_TURN_SUBGAMES = (1, 2)
_SMALL_ITERATIONS = {1: 64, 2: 128}


@dataclass(frozen=True)
class FigureView:
    """One panel: a measure of an experiment's curves over an axis."""

    experiment: str
    axis: str
    measure: str


@dataclass(frozen=True)
class Comparison:
    """Ratio of the measures of two variants, worse / better, as geometric mean over points of a range."""

    better: str
    worse: str
    first: float
    last: float


@dataclass(frozen=True)
class PaperFigure:
    """Experiments by name (documents of `mccfr compare`), panels drawn from them, and comparisons."""

    title: str
    experiments: Mapping[str, Document]
    views: Sequence[FigureView]
    comparisons: Sequence[Comparison] = ()
    columns: int = 1


@dataclass(frozen=True)
class Request:
    """Arguments for a figure.

    size     one of SIZES
    games    directory of the user's endgames; None: the shipped ones
    workers  number of threads or processes; None: the figure's default
    """

    size: str
    games: Path | None
    workers: int | None


@dataclass(frozen=True)
class FigureEntry:
    """Title of a figure and the function that makes it."""

    title: str
    make: Callable[[Request], PaperFigure]


def _variant(name: str, *overrides: str) -> Document:
    return {"name": name, "set": list(overrides)}


def _preset(name: str, preset: str, *overrides: str) -> Document:
    return _variant(name, f"solver.variant={preset}", *overrides)


CFR, CFR_PLUS, LCFR = _preset("CFR", "cfr"), _preset("CFR+", "cfr+"), _preset("LCFR", "lcfr")
DCFR = _preset("DCFR(3/2, 0, 2)", "dcfr")
DISCOUNTS = (
    CFR_PLUS,
    LCFR,
    DCFR,
    _preset("DCFR(3/2, 1/2, 2)", "dcfr-pruning"),
    _preset("DCFR(3/2, -∞, 2)", "dcfr", "solver.beta=-inf"),
    _preset("LCFR+", "lcfr+"),
)
MINIMISERS = (
    CFR_PLUS,
    LCFR,
    _preset("Optimistic LCFR", "optimistic-lcfr"),
    DCFR,
    _preset("NormalHedge DCFR", "nh-dcfr"),
)
NEWER = (
    CFR_PLUS,
    DCFR,
    _preset("PCFR+", "pcfr+"),
    _preset("DCFR+", "dcfr+"),
    _preset("PDCFR+", "pdcfr+"),
    _preset("HS-DCFR(15)", "hs-dcfr"),
    _preset("HS-DCFR(30)", "hs-dcfr-30"),
    _preset("HS-PCFR+(15)", "hs-pcfr+"),
)
SAMPLED = tuple(
    _variant(name, f"solver.discount={discount}")
    for name, discount in (("no discount", "none"), ("linear", "linear"), ("initial", "initial"))
)


def _document(
    game: Document,
    solver: Document,
    request: Request,
    variants: Sequence[Document],
    compare: Document,
    workers: int = 0,
) -> Document:
    """Return an experiment.

    compare  keys of `[compare]` besides the variants
    workers  default number of threads or processes
    """
    workers = workers if request.workers is None else request.workers
    compare = {**compare, "variant": list(variants)}
    return {"game": game, "solver": solver, "run": {"workers": workers}, "compare": compare}


def powers(last: int) -> list[int]:
    """Return the rounded powers of √2 up to `last`: 1, 2, 3, 4, 6, 8, 11, 16, ..."""
    points = sorted({round(2 ** (k / 2)) for k in range(2 * last.bit_length())})
    return [point for point in points if point <= last]


def _endgame(number: int, request: Request) -> tuple[Document, str]:
    """Return game and title of subgame 1 to 4: the user's file if it exists, else the shipped endgame."""
    path = request.games / f"subgame{number}.txt" if request.games else None
    if path is not None and path.is_file():
        return {"name": "holdem-subgame", "file": str(path.resolve())}, f"Subgame {number}"
    street = "turn" if number in _TURN_SUBGAMES else "river"
    return {"name": "holdem-subgame", "file": str(SHIPPED / f"{street}.txt")}, f"Shipped {street} endgame"


CLOCK = ("twin", "leduc-12", *(f"endgame-{number}" for number in range(1, 5)))
"""Games of the comparison of all algorithms over processor time (`figures_clock`)."""


def clock_game(name: str, request: Request) -> tuple[Document, str]:
    """Return game and title of one of CLOCK."""
    if name == "twin":
        return twin(), "Twenty-card twin of hold'em"
    if name == "leduc-12":
        return LEDUC_12, "Leduc poker with 12 ranks"
    return _endgame(int(name.removeprefix("endgame-")), request)


def _endgame_variants(
    number: int, request: Request, variants: Sequence[Document], comparisons: Sequence[tuple[str, str]], river_last: int
) -> PaperFigure:
    """Return the figure of full-width variants on an endgame, over iterations.

    river_last  last iteration on rivers at the small size
    """
    game, name = _endgame(number, request)
    turn = number in _TURN_SUBGAMES
    last = {"small": _SMALL_ITERATIONS.get(number, river_last), "paper": 32768}[request.size]
    solver = {"algorithm": "cfr", "dtype": "float32" if turn else "float64"}
    compare = {"title": name, "at": powers(last)}
    document = _document(game, solver, request, variants, compare, workers=2 if turn else 0)
    ranges = [(256, 2048) if last > 256 else (last // 4, last)]
    if last > 4096:
        ranges.append((last // 2, last))
    return PaperFigure(
        name,
        {"curves": document},
        [FigureView("curves", "iterations", "exploitability_mbb")],
        [Comparison(better, worse, *ends) for ends in ranges for better, worse in comparisons],
    )


_DISCOUNT_COMPARISONS = (
    ("DCFR(3/2, 0, 2)", "CFR+"),
    ("LCFR", "CFR+"),
    ("LCFR", "LCFR+"),
    ("CFR+", "LCFR+"),
    ("DCFR(3/2, 0, 2)", "DCFR(3/2, 1/2, 2)"),
    ("DCFR(3/2, 0, 2)", "DCFR(3/2, -∞, 2)"),
)
_MINIMISER_COMPARISONS = (("NormalHedge DCFR", "DCFR(3/2, 0, 2)"), ("Optimistic LCFR", "LCFR"))


def _discounts(
    title: str, game: Document, last: int, request: Request, comparisons: Sequence[tuple[str, str]]
) -> PaperFigure:
    """Return the figure of discounts, and CFR without any, on a game without big blind."""
    document = _document(game, {"algorithm": "cfr"}, request, [*DISCOUNTS, CFR], {"at": powers(last)})
    return PaperFigure(
        title,
        {"curves": document},
        [FigureView("curves", "iterations", "exploitability_chips")],
        [Comparison(better, worse, last / 4, last) for better, worse in comparisons],
    )


def _goofspiel(request: Request) -> PaperFigure:
    last, comparisons = {"small": 1024, "paper": 8192}[request.size], [("CFR", "LCFR"), *_DISCOUNT_COMPARISONS]
    return _discounts("Goofspiel, five cards", {"name": "goofspiel"}, last, request, comparisons)


def _matrix(request: Request) -> PaperFigure:
    last, game = {"small": 4096, "paper": 1048576}[request.size], {"name": "matrix", "payoffs": [[1, 0.9], [-0.7, 1]]}
    return _discounts("The matrix game [[1, 0.9], [-0.7, 1]]", game, last, request, _DISCOUNT_COMPARISONS)


def _sampled(number: int, request: Request) -> PaperFigure:
    """Return the figure of external sampling with and without discounts, over nodes touched."""
    game, name = _endgame(number, request)
    last, seeds = {"small": (1e8, 5), "paper": (1e9, 100)}[request.size]
    title, solver = f"{name}: external sampling", {"algorithm": "external-sampling", "period_nodes": 10_000_000}
    compare = {"title": title, "x": "nodes", "first": 1e6, "last": last, "points": 25, "seeds": list(range(seeds))}
    document = _document(game, solver, request, SAMPLED, compare)
    comparisons = [("linear", "no discount"), ("initial", "no discount"), ("initial", "linear")]
    return PaperFigure(
        title,
        {"curves": document},
        [FigureView("curves", "nodes", "exploitability_mbb")],
        [Comparison(better, worse, last / 2, last) for better, worse in comparisons],
    )


_LEDUC: Mapping[str, Document] = {
    "Leduc": {"name": "leduc", "merge_suits": True},
    "Leduc-5": {"name": "leduc", "merge_suits": True, "bets": [[0.5, 1, 2, 4, 8], [1, 2, 4, 8, 16]]},
}
_PRUNING_NODES = {"small": {"Leduc": 1e7, "Leduc-5": 2e8}, "paper": {"Leduc": 1e8, "Leduc-5": 2e9}}
_THRESHOLD_NODES = {"small": 5e7, "paper": 2e9}
_MEASURES = ["nash_conv_chips", "nodes_per_iteration"]


def _leduc(game: str, last: float, request: Request, variants: Sequence[Document]) -> Document:
    """Return an experiment of CFR on a Leduc game, with simultaneous updates.

    last  nodes touched at the end
    """
    compare = {"title": game, "x": "nodes", "y": _MEASURES, "first": last / 1000, "last": last, "points": 40}
    return _document(_LEDUC[game], {"algorithm": "cfr", "updates": "simultaneous"}, request, variants, compare)


def _pruning(request: Request) -> PaperFigure:
    variants = [
        _preset(f"{name}, {pruning} pruning", preset, f"solver.pruning={pruning}", "solver.prune_threshold=25")
        for name, preset in (("CFR", "cfr"), ("CFR+", "cfr+"))
        for pruning in ("partial", "regret-based")
    ]
    comparisons = [
        Comparison(f"{name}, regret-based pruning", f"{name}, partial pruning", nodes / 2, nodes)
        for name in ("CFR", "CFR+")
        for nodes in _PRUNING_NODES[request.size].values()
    ]
    return PaperFigure(
        "Regret-based against partial pruning",
        {game: _leduc(game, nodes, request, variants) for game, nodes in _PRUNING_NODES[request.size].items()},
        [FigureView(game, "nodes", measure) for measure in _MEASURES for game in _LEDUC],
        comparisons,
        columns=2,
    )


def _zero_reach(request: Request) -> PaperFigure:
    """Return the figure of best responses at infosets that a player's own strategy never reaches."""
    last = {"small": 4096, "paper": 65536}[request.size]
    variants = [
        _preset(f"{name}{text}", preset, f"solver.best_response={key}")
        for name, preset in (("CFR", "cfr"), ("CFR+", "cfr+"))
        for text, key in (("", "none"), (", zero-reach best response", "zero-reach"))
    ]
    solver = {"algorithm": "cfr", "updates": "simultaneous", "pruning": "partial"}  # all count histories as nodes
    compare = {"title": "Leduc", "y": _MEASURES, "at": powers(last)}
    document = _document(_LEDUC["Leduc"], solver, request, variants, compare)
    return PaperFigure(
        "A best response where own reach is zero, on Leduc",
        {"Leduc": document},
        [FigureView("Leduc", axis, "nash_conv_chips") for axis in ("iterations", "nodes")],
        [Comparison(f"{name}, zero-reach best response", name, last / 4, last) for name in ("CFR", "CFR+")],
        columns=2,
    )


def _thresholds(request: Request) -> PaperFigure:
    variants = [
        _preset(f"{name}, threshold {threshold}", preset, f"solver.prune_threshold={threshold}")
        for name, preset in (("CFR", "cfr"), ("CFR+", "cfr+"))
        for threshold in (1, 5, 10, 25, 50)
    ]
    last = _THRESHOLD_NODES[request.size]
    documents = {
        name: _leduc("Leduc-5", last, request, [one for one in variants if one["name"].startswith(f"{name},")])
        for name in ("CFR", "CFR+")
    }
    for document in documents.values():
        document["solver"]["pruning"] = "regret-based"
    comparisons = [
        Comparison(f"{name}, threshold 25", f"{name}, threshold {threshold}", last / 2, last)
        for name in ("CFR", "CFR+")
        for threshold in (1, 10, 50)
    ]
    views = [FigureView(name, "nodes", "nash_conv_chips") for name in documents]
    return PaperFigure("Minimum skip thresholds on Leduc-5", documents, views, comparisons, columns=2)


_NEWER_LAST = {"small": 1000, "paper": 10_000}
_TWIN_LAST = {"small": 64, "paper": 1000}


def _newer(request: Request) -> PaperFigure:
    """Return the figure of variants after 2019 beside earlier ones, each up to its planned horizon."""
    games: dict[str, tuple[Document, int, str]] = {
        "Kuhn": ({"game": {"name": "kuhn"}}, _NEWER_LAST[request.size], "exploitability_chips"),
        "Leduc": ({"game": {"name": "leduc"}}, _NEWER_LAST[request.size], "exploitability_chips"),
        "Goofspiel, five cards": ({"game": {"name": "goofspiel"}}, _NEWER_LAST[request.size], "exploitability_chips"),
        "Twenty-card twin of hold'em": (
            {"compare": {"base": str(SHIPPED.parent / "twin-20.toml")}},
            _TWIN_LAST[request.size],
            "exploitability_chips",
        ),
    }
    for number in (3, 4):
        game, name = _endgame(number, request)
        key = name if name not in games else f"{name}, {number}"
        games[key] = ({"game": game}, _NEWER_LAST[request.size], "exploitability_mbb")
    experiments = {}
    for name, (document, last, _) in games.items():
        compare = {"title": f"{name}, {last:,} iterations", "at": sorted({*powers(last), last})}
        compare |= document.get("compare", {})
        experiment = _document(document.get("game", {}), {"algorithm": "cfr"}, request, NEWER, compare)
        experiments[name] = {key: table for key, table in experiment.items() if table}
    return PaperFigure(
        "Full-width variants after 2019",
        experiments,
        [FigureView(name, "iterations", measure) for name, (_, _, measure) in games.items()],
        [
            Comparison(variant["name"], "DCFR(3/2, 0, 2)", last / 2, last)
            for last in sorted({last for _, last, _ in games.values()})
            for variant in NEWER
            if variant is not DCFR
        ],
        columns=2,
    )


def _averages(request: Request) -> PaperFigure:
    """Return the figure of the gallery's two averages of external sampling with three players."""
    last = {"small": 100_000, "paper": 1_000_000}[request.size]
    title, all_traversals, one = "Leduc, three players, four cards", "at every other player", "at the next player only"
    variants = [
        _variant(name, f"solver.algorithm=mccfr.gallery.external:{algorithm}")
        for name, algorithm in ((all_traversals, "ExternalSampling"), (one, "AverageAtOneTraversal"))
    ]
    compare = {"title": title, "y": "nash_conv_chips", "first": 1000, "last": last, "points": 15}
    game = {"name": "leduc", "players": 3, "ranks": 4, "suits": 1}
    return PaperFigure(
        "External sampling with three players: where the average is accumulated",
        {"curves": _document(game, {}, request, variants, compare)},
        [FigureView("curves", "iterations", "nash_conv_chips")],
        [Comparison(all_traversals, one, last / 4, last)],
    )


def _entries() -> dict[str, FigureEntry]:
    found: dict[str, FigureEntry] = {}
    for number in range(1, 5):
        found[f"discounting-{number}"] = FigureEntry(
            f"D figure {number}: discounts on subgame {number}",
            lambda request, number=number: _endgame_variants(number, request, DISCOUNTS, _DISCOUNT_COMPARISONS, 8192),
        )
    found["discounting-5"] = FigureEntry("D figure 5: discounts on Goofspiel", _goofspiel)
    for number in range(1, 5):
        found[f"discounting-{number + 5}"] = FigureEntry(
            f"D figure {number + 5}: NormalHedge and optimistic variants on subgame {number}",
            lambda request, number=number: _endgame_variants(number, request, MINIMISERS, _MINIMISER_COMPARISONS, 2048),
        )
    for number in (3, 4):
        found[f"discounting-{number + 7}"] = FigureEntry(
            f"D figure {number + 7}: discounts in external sampling on subgame {number}",
            lambda request, number=number: _sampled(number, request),
        )
    found["newer"] = FigureEntry("N: variants after 2019 on six games", _newer)
    found["matrix"] = FigureEntry("D: the matrix game [[1, 0.9], [-0.7, 1]]", _matrix)
    found["pruning-1"] = FigureEntry("P figure 1: regret-based against partial pruning on Leduc and Leduc-5", _pruning)
    found["pruning-a"] = FigureEntry("P appendix A: best responses where own reach is zero, on Leduc", _zero_reach)
    found["pruning-b"] = FigureEntry("P appendix B: thresholds of regret-based pruning on Leduc-5", _thresholds)
    found["averages-3"] = FigureEntry("the average of external sampling with three players, two ways", _averages)
    return found


CATALOGUE = _entries()
EXAMPLE = "example"
"""D, section 3: one decision among payoffs 0, 1 and -1,000,000; it needs current strategies and has no runs."""
