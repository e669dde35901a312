"""How well does each measure tell what a strategy is worth: many policies of a game that has the exact answer.

Policies of runs/twin-20.toml differ in their card abstraction (features, buckets), the algorithm, how long they were
trained, and the seed.  For each, in chips a hand: exact exploitability in the real game; what a best response from each
street on wins over all boards, which is what sampled-br estimates; what local best response wins; exploitability within
the abstraction where recall is perfect; what is lost to one fixed finer policy; and the exact exploitability of the
policy purified, thresholded and in whole shares of 255.  Policies that are done stay in OUT/policies.jsonl, so that the
same command goes on where it was stopped.
"""

import csv
import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import rich_click as click

from abstraction.buckets import Abstraction
from abstraction.build import Builder
from abstraction.recipe import STREETS, DeckRecipe, Recipe, StreetRecipe
from mccfr.config.file import config_from, load_document
from mccfr.evaluation.abstract import abstract_problem, evaluate_abstract
from mccfr.evaluation.methods import method_named
from mccfr.evaluation.side import Side
from mccfr.experiments.plot import can_plot
from mccfr.games.bucketed import bucketed
from mccfr.games.catalogue import build_game
from mccfr.games.game import Game
from mccfr.policy.quantise import TOTALS, quantise
from mccfr.solvers.public.best_response import Walk, values
from mccfr.solvers.public.public_tree import PublicTree, public_tree
from mccfr.solvers.public.street_walk import FOLLOW, RESPOND
from mccfr.solvers.registry import algorithm_of
from mccfr.tables.layout import private_tables
from mccfr.tables.simplified import purified, thresholded
from mccfr.tables.strategy import Strategy, row_starts
from storage import durable

TWIN = Path(__file__).resolve().parent.parent / "runs" / "twin-20.toml"
POLICIES, TABLE, ORDER, PICTURE = "policies.jsonl", "policies.csv", "measures.csv", "measures.png"
THRESHOLDS = (0.05, 0.1, 0.15, 0.25)
_MOST_FLOP, _MOST_TURN = 50, 100  # the twin has 69 and 126 kinds of hands there by their strength
_NO_LIMIT = 2**62


@dataclass(frozen=True)
class Plan:
    """A policy to be: `points` are nodes touched, ascending, each of which is one policy."""

    features: str
    buckets: int
    algorithm: str
    seed: int
    points: tuple[int, ...]

    @property
    def name(self) -> str:
        """Of the run that it is a point of."""
        return f"{self.features}-{self.buckets}-{self.algorithm}-{self.seed}"


SAMPLED, BR = "external-sampling", "cfr-br"
FEATURES = ("ehs", "ochs", "potential", "recall")
"""E[HS] percentiles everywhere; histograms and OCHS as in hold'em's recipes; potential-aware instead of histograms; and
histograms each inside a bucket of the street before, so that recall is perfect."""
SIZES: Mapping[str, Sequence[Plan]] = {
    "small": [Plan(kind, k, SAMPLED, 0, (1_000_000,)) for kind in ("ehs", "recall") for k in (10, 40)],
    "growing": [
        *(Plan("ehs", k, SAMPLED, 0, (1_000_000, 10_000_000)) for k in (10, 20, 40, 80)),
        *(Plan("ochs", k, SAMPLED, 0, (1_000_000, 10_000_000)) for k in (10, 40, 160, 640)),
        *(Plan("ochs", k, BR, 0, (5_000_000, 20_000_000)) for k in (10, 40, 160)),
    ],
    "fifty": [
        Plan(kind, k, SAMPLED, seed, (1_000_000, 10_000_000))
        for seed in (0, 1)
        for k in (10, 30, 80)
        for kind in FEATURES
    ]
    + [Plan(kind, k, BR, 0, (20_000_000,)) for k in (10, 40) for kind in ("ehs", "ochs")],
}


def recipe_of(features: str, buckets: int, deck: DeckRecipe) -> Recipe:
    """Buckets of flop, turn and river alike in number, as far as the streets have kinds of hands."""
    few, some = min(buckets, _MOST_FLOP), min(buckets, _MOST_TURN)
    if features == "ehs":
        parts = [StreetRecipe(features="ehs", buckets=k) for k in (few, some, some)]
    elif features in ("ochs", "potential"):
        earlier = "histogram" if features == "ochs" else "potential"
        parts = [StreetRecipe(features=earlier, buckets=k) for k in (few, some)]
        parts.append(StreetRecipe(features="ochs", buckets=buckets))
    else:  # at least one inside each of the 25 kinds of hole cards
        first = 25 + few
        parts = [StreetRecipe(features="histogram", buckets=k, nested=True) for k in (first, first + buckets)]
        parts.append(StreetRecipe(features="ehs", buckets=first + 2 * buckets, nested=True))
    return Recipe(deck=deck, **dict(zip(STREETS[1:], parts, strict=True)))


class Study:
    """The twin, its abstractions, and the fixed policy that all others meet."""

    def __init__(self, out: Path, hands: int) -> None:
        self._document, self._out, self._hands = load_document(TWIN)["game"], out, hands
        self.real = build_game(config_from({"game": self._document}, str(TWIN)).game, TWIN.parent)
        self._deck = DeckRecipe(**{key: self._document[key] for key in ("ranks", "suits", "hole_cards", "board_cards")})
        self._trees: dict[tuple[str, int], tuple[Game, PublicTree]] = {}
        self._anchor: tuple[Game, Strategy] | None = None

    def game(self, features: str, buckets: int) -> tuple[Game, PublicTree]:
        """The twin on an abstraction, built if it is not there yet, and its public tree."""
        if (features, buckets) not in self._trees:
            path = self._out / "abstractions" / f"{features}-{buckets}"
            Builder(recipe_of(features, buckets, self._deck), path).build()
            game = bucketed(self.real, Abstraction(path))
            self._trees = {(features, buckets): (game, public_tree(game))}
        return self._trees[features, buckets]

    def train(self, plan: Plan) -> Iterator[tuple[int, Strategy]]:
        """The average strategy at each point of a plan, with the nodes touched by then."""
        solver = {"algorithm": plan.algorithm}
        solver |= {"seed": plan.seed, "period_nodes": plan.points[-1] // 10} if plan.algorithm == SAMPLED else {}
        config = config_from({"game": self._document, "solver": solver}, plan.name)
        game, _ = self.game(plan.features, plan.buckets)
        algorithm = algorithm_of(algorithm_of(config).completed(game))
        tables = private_tables(algorithm.layout(game))
        worker, nodes, iterations = algorithm.solver(game, tables), 0, 0
        for point in plan.points:
            while nodes < point:
                run, touched = worker.run(nodes, point - nodes, _NO_LIMIT)
                nodes, iterations = nodes + touched, iterations + run
            yield nodes, algorithm.average(game, tables, nodes, iterations)

    @property
    def anchor(self) -> tuple[Game, Strategy]:
        """Three million nodes on buckets of perfect recall, finer than those of most others, with a seed of its own."""
        if self._anchor is None:
            plan = Plan("recall", 200, SAMPLED, 99, (3_000_000,))
            strategy = [strategy for _, strategy in self.train(plan)][-1]
            self._anchor = self.game(plan.features, plan.buckets)[0], strategy
        return self._anchor

    def measure(self, plan: Plan, strategy: Strategy, *, changed: bool) -> dict[str, float]:
        """Every measure of a policy, in chips a hand; `changed`: what simpler forms of it are worth as well."""
        anchor, (game, public) = self.anchor, self.game(plan.features, plan.buckets)
        found = {"exact": exploitability(public, strategy)}
        for street in range(1, public.streets):
            found[f"from {STREETS[street]}"] = exploitability(public, strategy, street)
        lbr = method_named("lbr")
        record = lbr.find(Side(game, strategy), None, **{**lbr.takes, "hands": self._hands})
        found["lbr"] = record["value_chips"]
        if abstract_problem(game) is None:
            found["abstract"] = evaluate_abstract(game, strategy).exploitability_chips
        found["lost to anchor"] = -won(game, strategy, *anchor)
        if changed:
            found["purified"] = exploitability(public, purified(game, strategy))
            for threshold in THRESHOLDS:
                found[f"without {threshold}"] = exploitability(public, thresholded(game, strategy, threshold))
            found["uint8"] = exploitability(public, in_shares(game, strategy, "uint8"))
        return found


def exploitability(public: PublicTree, strategy: Strategy, street: int = 0) -> float:
    """Mean of what best responses win that know their cards and respond from a street on: 0 is the exact figure."""
    walk = Walk(public, [table.T for table in strategy.probability])
    return float(sum(walk.values(player, street)[RESPOND] for player in range(2))) / public.joint_weight / 2


def won(game: Game, strategy: Strategy, other: Game, against: Strategy) -> float:
    """What a strategy wins a hand from another on other buckets, mean over both seats, over all deals."""
    total = 0.0
    sides = ((game, strategy), (other, against))
    for seat in range(2):
        first, second = sides[seat], sides[1 - seat]
        cards = first[0].cards.listed()
        there = second[0].cards.listed()
        bucket = [np.stack([mine[0], their[1]]) for mine, their in zip(cards.bucket, there.bucket, strict=True)]
        buckets = np.stack([cards.buckets[:, 0], there.buckets[:, 1]], axis=1)
        mixed = replace(first[0], cards=replace(cards, bucket=bucket, buckets=buckets))
        blocks = range(first[1].blocks)
        probability = tuple((first, second)[block % 2][1].probability[block] for block in blocks)
        weight = tuple((first, second)[block % 2][1].weight[block] for block in blocks)
        value = values(mixed, Strategy(probability, weight), (0,), public_tree(mixed))[0, FOLLOW]
        total += float(value) * (-1 if seat else 1)
    return total / 2


def in_shares(game: Game, strategy: Strategy, dtype: str) -> Strategy:
    """A strategy as an exported policy has it."""
    shares = [quantise(p, row_starts(game, block), dtype) for block, p in enumerate(strategy.probability)]
    return Strategy(tuple(share / TOTALS[dtype] for share in shares), strategy.weight)


def ranks(numbers: Sequence[float]) -> np.ndarray[Any, Any]:
    """Places in ascending order; equal numbers share the mean of theirs."""
    values_, inverse, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse] if len(values_) else np.zeros(0)


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's; not a number for fewer than three policies, or where all are equal."""
    if len(one) < 3 or len(set(one)) == 1 or len(set(other)) == 1:
        return float("nan")
    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def order(found: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """A row for each measure: policies, rank correlation with the exact figure, mean share of it, largest share."""
    names = dict.fromkeys(name for line in found for name in line["chips"] if name != "exact")
    rows = []
    for name in names:
        both = [(line["chips"][name], line["chips"]["exact"]) for line in found if name in line["chips"]]
        mine, exact = [pair[0] for pair in both], [pair[1] for pair in both]
        shares = [measured / true for measured, true in both]
        rows.append([name, len(both), rank_correlation(mine, exact), float(np.mean(shares)), max(shares)])
    return rows


def publish(out: Path, found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write the tables and the picture of the policies that are done; lines for people."""
    names = list(dict.fromkeys(name for line in found for name in line["chips"]))
    keys = ["features", "buckets", "algorithm", "seed", "nodes"]
    rows = [[*(line[key] for key in keys), *(line["chips"].get(name, "") for name in names)] for line in found]
    _write(out / TABLE, [[*keys, *names], *rows])
    ordered = order(found)
    _write(out / ORDER, [["measure", "policies", "rank_correlation", "mean_share", "largest_share"], *ordered])
    if can_plot():
        _draw(out / PICTURE, found)
    return [
        f"{name}: {count} policies, rank correlation {correlation:.2f}, {share:.0%} of the exact figure in the mean, "
        f"{most:.0%} at most"
        for name, count, correlation, share, most in ordered
    ]


def _write(path: Path, rows: Sequence[Sequence[Any]]) -> None:
    text = io.StringIO()
    shown = [[f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row] for row in rows]
    csv.writer(text, lineterminator="\n").writerows(shown)
    durable.replace_file(path, text.getvalue().encode())


def _draw(path: Path, found: Sequence[Mapping[str, Any]]) -> None:
    """Each measure against the truth, a point for each policy, the colour by its features."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = ["from flop", "from turn", "from river", "lbr", "lost to anchor", "abstract"]
    figure = Figure(figsize=(12, 7), layout="constrained")
    for axes, name in zip(figure.subplots(2, 3).flat, names, strict=True):
        for kind in FEATURES:
            mine = [line["chips"] for line in found if line["features"] == kind and name in line["chips"]]
            exact = [chips["exact"] for chips in mine]
            axes.plot(exact, [chips[name] for chips in mine], "o", markersize=4, label=kind)
        axes.set(title=name, xlabel="exact exploitability (chips)", ylabel="measured (chips)")
        axes.axline((0, 0), slope=1, color="#999999", linewidth=0.8)
    figure.axes[0].legend()
    drawn = io.BytesIO()
    FigureCanvasAgg(figure).print_png(drawn)
    durable.replace_file(path, drawn.getvalue())


def read_done(out: Path) -> list[dict[str, Any]]:
    """Policies that are measured."""
    path = out / POLICIES
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(out: Path, plans: Sequence[Plan], hands: int) -> list[str]:
    """Train and measure what is not done yet, and publish; lines for people."""
    out.mkdir(parents=True, exist_ok=True)
    study, done = Study(out, hands), {(line["name"], line["point"]) for line in read_done(out)}
    for plan in plans:
        if all((plan.name, point) in done for point in plan.points):
            continue
        for point, (nodes, strategy) in zip(plan.points, study.train(plan), strict=True):
            if (plan.name, point) in done:
                continue
            chips = study.measure(plan, strategy, changed=point == plan.points[-1])
            line = {"name": plan.name, "point": point, "nodes": nodes, "chips": chips}
            line |= {key: getattr(plan, key) for key in ("features", "buckets", "algorithm", "seed")}
            durable.append_line(out / POLICIES, json.dumps(line))
            print(f"{plan.name} at {nodes:,} nodes: {chips['exact']:.4g} chips", file=sys.stderr, flush=True)
    return publish(out, read_done(out))


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--size", type=click.Choice(list(SIZES)), default="small", show_default=True, help="Which policies.")
@click.option("--hands", type=click.IntRange(100), default=200, show_default=True, help="Deals of local best response.")
def main(out: Path, size: str, hands: int) -> None:
    """Measures of strategies against their exact exploitability, as tables and a picture in OUT.

    small: 4 policies, growing: 22 on more and more buckets with and without CFR-BR, fifty: 52 of four kinds of
    features.
    """
    for line in run(out, SIZES[size], hands):
        click.echo(line)


if __name__ == "__main__":
    main()
