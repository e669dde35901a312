"""Compares measures of strategies with their exact exploitability, over many policies of a small game.

The policies of runs/twin-20.toml differ in card abstraction, algorithm, length of training and seed.  Each is measured
in chips per hand by:

* exact exploitability in the real game, and within the abstraction if recall is perfect
* a best response from each street on, over all boards, which is the value that sampled-br estimates
* local best response and a trained best response
* the loss to one fixed policy with more buckets
* the exact exploitability of the policy purified, thresholded and rounded to uint8

OUT/policies.jsonl keeps the measured policies, so that the same command continues where it was stopped.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import rich_click as click

from abstraction.buckets import Abstraction
from abstraction.build import Builder
from abstraction.recipe import STREETS, Recipe
from mccfr.cards.cards import Cards
from mccfr.config.file import config_from, load_document
from mccfr.evaluation.abstract import abstract_problem, evaluate_abstract
from mccfr.evaluation.methods import method_named
from mccfr.evaluation.value_features import ProfileValues
from mccfr.experiments.table import write_csv
from mccfr.games.bucketed import bucketed
from mccfr.games.catalogue import build_game
from mccfr.games.game import Game
from mccfr.policy.profile import Profile
from mccfr.policy.quantise import TOTALS, quantise
from mccfr.solvers.public.best_response import Walk, values
from mccfr.solvers.public.public_tree import PublicTree, public_tree
from mccfr.solvers.public.street_arrays import FOLLOW, RESPOND
from mccfr.solvers.registry import algorithm_of
from mccfr.tables.layout import private_tables
from mccfr.tables.simplified import simplified
from mccfr.tables.strategy import Strategy, row_starts
from storage import durable

TWIN = Path(__file__).resolve().parent.parent / "runs" / "twin-20.toml"
POLICIES, TABLE, ORDER = "policies.jsonl", "policies.csv", "measures.csv"
THRESHOLDS = (0.05, 0.1, 0.15, 0.25)
LOWER_BOUNDS = ("from flop", "from turn", "from river", "lbr 1", "lbr 2", "trained-br")
_MOST = {"flop": 50, "turn": 100}  # most buckets; the twin has 69 and 126 kinds of hands on these streets
_MOST_EHS = {**_MOST, "river": 60}  # most buckets by E[HS], which has 66 values on the river
_NO_LIMIT = 2**62
_RESAMPLED = 1000


@dataclass(frozen=True)
class Arm:
    """A run of the study: each of `points`, ascending nodes touched, gives one policy."""

    features: str
    buckets: int
    algorithm: str
    seed: int
    points: tuple[int, ...]

    @property
    def name(self) -> str:
        """Return the run's name."""
        return f"{self.features}-{self.buckets}-{self.algorithm}-{self.seed}"


@dataclass(frozen=True)
class StudyEffort:
    """Effort of the measures of each policy.

    hands       deals for local best response, the same for all policies; None: all deals, for the smallest games
    nodes       training of each trained best response, both seats together
    boards      boards of its evaluation
    simplified  True: also measure the last policy of each run purified, thresholded and rounded, and lbr in setting 1
    """

    hands: int | None
    nodes: int
    boards: int
    simplified: bool = True


SAMPLED, PUBLIC, BR, LOSSLESS = "external-sampling", "public-chance-sampling", "cfr-br", "lossless"
BOARDS = {f"cfr-br-{trunk}": trunk for trunk in ("own", LOSSLESS)}
"""Values of `trunk` (buckets of the opponents before the river) for CFR-BR on sampled boards, by name."""
OPPONENTS = {
    f"{algorithm}-against-{name}": (algorithm, buckets)
    for algorithm in (SAMPLED, PUBLIC)
    for name, buckets in (("160", ("ochs", 160)), (LOSSLESS, (LOSSLESS, 0)))
}
"""Sampling algorithms against opponents with a finer abstraction, by name: algorithm, (features, buckets)."""
FEATURES = ("ehs", "ochs", "potential", "recall")
"""Features of card abstractions: E[HS] percentiles; histograms, and OCHS on the river; potential-aware, and OCHS on the
river; histograms nested in the buckets of the street before (perfect recall).  Further, `LOSSLESS` is no abstraction,
and `VALUES` uses the hands' values by the policies of `WORTH`."""
ANCHOR = Arm("recall", 200, SAMPLED, 99, (100_000_000,))
"""The fixed policy that all others play: with more buckets, longer training and another seed."""
VALUES = "values"
WORTH = Arm("ochs", 160, "cfr-br-own", 5, (3_500_000, 7_000_000, 10_500_000))
"""A short run whose policies give the values of hands for `VALUES`."""
FULL = StudyEffort(hands=300, nodes=200_000, boards=100)
_EARLIER = {"ehs": "ehs", "ochs": "histogram", "potential": "potential", "recall": "histogram", VALUES: VALUES}
_GROWN = (10, 40, 160)


def _sampled(seed: int) -> list[Arm]:
    return [Arm(kind, k, SAMPLED, seed, (1_000_000, 30_000_000)) for k in (10, 30, 80) for kind in FEATURES]


SIZES: Mapping[str, tuple[Sequence[Arm], StudyEffort | None]] = {
    "small": ([Arm(kind, k, SAMPLED, 0, (1_000_000,)) for kind in ("ehs", "recall") for k in (10, 40)], FULL),
    "growing": (
        [
            *(Arm(kind, k, SAMPLED, s, (10**7, 10**8)) for k in _GROWN for s in (0, 1) for kind in ("ochs", "recall")),
            *(Arm(kind, k, BR, 0, (5 * 10**6, 2 * 10**7)) for k in _GROWN for kind in ("ochs", "recall")),
            Arm(LOSSLESS, 0, SAMPLED, 0, (10**7, 10**8)),
        ],
        None,
    ),
    "boards": (
        [
            *(Arm("ochs", k, name, s, (4 * 10**6, 12 * 10**6)) for name in BOARDS for k in (10, 160) for s in range(3)),
            *(
                Arm("ochs", k, name + against, s, points)
                for name, points in ((SAMPLED, (2 * 10**8, 7 * 10**8)), (PUBLIC, (4 * 10**6, 12 * 10**6)))
                for k, finer in ((10, "160"), (160, LOSSLESS))
                for against in ("", f"-against-{finer}")
                for s in range(3)
            ),
        ],
        None,
    ),
    "values": (
        [
            Arm(kind, k, name, s, points)
            for name, points in (("cfr-br-own", (12 * 10**6,)), (SAMPLED, (7 * 10**8,)))
            for k in (10, 160)
            for kind in ("ochs", VALUES)
            for s in range(3)
        ],
        None,
    ),
    "fifty": (
        [
            *_sampled(0),
            *(Arm(kind, k, BR, 0, (10_000_000,)) for k in (10, 30) for kind in ("ehs", "ochs")),
            *_sampled(1),
        ],
        FULL,
    ),
}
"""Policies of each size, and the effort of further measures; None: only best responses from each street on."""


class Study:
    """A game, its card abstractions, and the fixed policy that all others play."""

    def __init__(self, out: Path, document: Mapping[str, Any], anchor: Arm = ANCHOR) -> None:
        """Prepare a study of a game.

        out       folder, in which abstractions are built
        document  `[game]` table of small-deck poker
        anchor    the fixed policy
        """
        self._document, self._out, self._plan = dict(document), out, anchor
        self.real = build_game(config_from({"game": self._document}, "the study").game, TWIN.parent)
        self._deck = {key: self._document[key] for key in ("ranks", "suits", "hole_cards", "board_cards")}
        self._trees: dict[tuple[str, int], tuple[Game, PublicTree]] = {}
        self._anchor: tuple[Game, Strategy] | None = None
        self.seconds = 0.0  # processor time of training of the current policy

    def recipe(self, features: str, buckets: int) -> Recipe:
        """Return a recipe with `buckets` buckets on each later street, at most one for each kind of hands."""
        streets = STREETS[1 : len(self._deck["board_cards"])]
        last = {"ochs": "ochs", "potential": "ochs", VALUES: VALUES}.get(features, "ehs")
        kinds = [*[_EARLIER[features]] * (len(streets) - 1), last]
        most = _MOST_EHS if features == "ehs" else _MOST
        count, nested = [min(buckets, most.get(street, buckets)) for street in streets], features == "recall"
        if nested:  # at least one in each bucket of the street before, plus `buckets`
            count = [int(self.real.buckets[0]) + count[0] + buckets * place for place in range(len(streets))]
        parts = [{"features": f, "buckets": k, "nested": nested} for f, k in zip(kinds, count, strict=True)]
        found = {**dict(zip(streets, parts, strict=True)), "deck": self._deck, "values": [WORTH.name]}
        return msgspec.convert(found, Recipe)

    def game(self, features: str, buckets: int) -> tuple[Game, PublicTree]:
        """Return the game on an abstraction, which is built if it does not exist, and its public tree."""
        if (features, buckets) not in self._trees:
            game = self.real
            if features != LOSSLESS:
                path = self._out / "abstractions" / f"{features}-{buckets}"
                recipe = self.recipe(features, buckets)
                Builder(recipe, path, values=ProfileValues(recipe, WORTH.name, self._short_run)).build()
                game = bucketed(self.real, Abstraction(path))
            self._trees = {(features, buckets): (game, public_tree(game))}
        return self._trees[features, buckets]

    def _short_run(self) -> list[Profile]:
        """Return the policies of `WORTH`."""
        found = []
        for _, strategy in self.train(WORTH):  # copied, because training goes on in the same tables
            probability, weight = ([np.array(table) for table in of] for of in (strategy.probability, strategy.weight))
            found.append(Profile(self.game(WORTH.features, WORTH.buckets)[0], Strategy(probability, weight)))
        return found

    def train(self, plan: Arm) -> Iterator[tuple[int, Strategy]]:
        """Yield (nodes touched, average strategy) at each point of a run."""
        solver: dict[str, Any] = {"algorithm": plan.algorithm}
        if plan.algorithm in BOARDS:
            solver = {"algorithm": BR, "trunk": BOARDS[plan.algorithm], "seed": plan.seed}
        opponents: Cards | None = None
        if plan.algorithm in OPPONENTS:
            sampler, buckets = OPPONENTS[plan.algorithm]
            opponents = self.game(*buckets)[0].cards
            solver = {"algorithm": sampler, "opponent_abstraction": plan.algorithm}
        solver |= {"seed": plan.seed} if solver["algorithm"] in (SAMPLED, PUBLIC) else {}
        solver |= {"period_nodes": plan.points[-1] // 10} if solver["algorithm"] == SAMPLED else {}
        config = config_from({"game": self._document, "solver": solver}, plan.name)
        game = replace(self.game(plan.features, plan.buckets)[0], opponent_cards=opponents)
        algorithm = algorithm_of(algorithm_of(config).completed(game))
        tables = private_tables(algorithm.layout(game))
        worker, nodes, iterations = algorithm.solver(game, tables), 0, 0
        worker.warm_up()
        self.seconds = 0.0
        for point in plan.points:
            began = time.process_time()
            while nodes < point:
                run, touched = worker.run(nodes, point - nodes, _NO_LIMIT)
                nodes, iterations = nodes + touched, iterations + run
            self.seconds += time.process_time() - began
            yield nodes, algorithm.averages.strategy(game, tables, nodes, iterations)

    @property
    def anchor(self) -> tuple[Game, Strategy]:
        """Return game and strategy of the fixed policy, which is trained on first access."""
        if self._anchor is None:
            strategy = [strategy for _, strategy in self.train(self._plan)][-1]
            self._anchor = self.game(self._plan.features, self._plan.buckets)[0], strategy
        return self._anchor

    def measure(
        self, plan: Arm, strategy: Strategy, effort: StudyEffort | None, *, simpler: bool
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return all measures of a policy in chips per hand, and half the 95 % interval of sampled ones.

        effort   None: only best responses, and exploitability within the abstraction
        simpler  True: also measure simplified forms of the policy, and local best response in setting 1
        """
        game, public = self.game(plan.features, plan.buckets)
        found, half = {"exact": exploitability(public, strategy)}, dict[str, float]()
        for street in range(1, public.streets):
            found[f"from {STREETS[street]}"] = exploitability(public, strategy, street)
        if plan.features != LOSSLESS and abstract_problem(game) is None:
            found["abstract"] = evaluate_abstract(game, strategy).exploitability_chips
        if effort is None:
            return found, half
        side = Profile(game, strategy)
        settings = "12" if simpler else "2"
        asked: dict[str, dict[str, Any]] = {f"lbr {s}": {"setting": s, "hands": effort.hands} for s in settings}
        asked["trained-br"] = {"nodes": effort.nodes, "boards": effort.boards}
        for name, options in asked.items():
            method = method_named(name.split()[0])
            record = method.find(side, None, method.options(**options))
            found[name] = record["value_chips"]
            half[name] = (record["ci95_chips"][1] - record["ci95_chips"][0]) / 2
        if simpler:
            found["purified"] = exploitability(public, simplified(game, strategy, purify=True))
            for threshold in THRESHOLDS:
                common = simplified(game, strategy, threshold=threshold)
                found[f"without {threshold}"] = exploitability(public, common)
            found["uint8"] = exploitability(public, in_shares(game, strategy, "uint8"))
        found["lost to anchor"] = -won(game, strategy, *self.anchor)
        return found, half


def exploitability(public: PublicTree, strategy: Strategy, street: int = 0) -> float:
    """Return the mean winnings of best responses on real cards that deviate from `street` on.

    Street 0 gives the exact exploitability.
    """
    walk = Walk(public, [table.T for table in strategy.probability])
    return float(sum(walk.values(player, street)[RESPOND] for player in range(2))) / public.joint_weight / 2


def won(game: Game, strategy: Strategy, other: Game, against: Strategy) -> float:
    """Return mean winnings per hand of a strategy against another with other buckets.

    It is the mean over both seats and all deals.
    """
    total = 0.0
    sides = ((game, strategy), (other, against))
    for seat in range(2):
        first, second = sides[seat], sides[1 - seat]
        cards = first[0].cards.listed()
        there = second[0].cards.listed()
        bucket = [np.stack([mine[0], their[1]]) for mine, their in zip(cards.bucket, there.bucket, strict=True)]
        buckets = np.stack([cards.buckets[:, 0], there.buckets[:, 1]], axis=1)
        mixed = replace(first[0], cards=replace(cards, bucket=bucket, buckets=buckets))
        blocks = range(len(first[1].blocks))
        probability = tuple((first, second)[block % 2][1].probability[block] for block in blocks)
        weight = tuple((first, second)[block % 2][1].weight[block] for block in blocks)
        value = values(mixed, Strategy(probability, weight), (0,), public_tree(mixed))[0, FOLLOW]
        total += float(value) * (-1 if seat else 1)
    return total / 2


def in_shares(game: Game, strategy: Strategy, dtype: str) -> Strategy:
    """Return a strategy rounded as in an exported policy."""
    shares = [quantise(p, row_starts(game, block), dtype) for block, p in enumerate(strategy.probability)]
    return Strategy(tuple(share / TOTALS[dtype] for share in shares), strategy.weight)


# --- measures against exact exploitability ---


def ranks(numbers: Sequence[float]) -> npt.NDArray[np.float64]:
    """Return ranks in ascending order; equal numbers get their mean rank."""
    _, inverse, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    places: npt.NDArray[np.float64] = (last - (counts - 1) / 2)[inverse]
    return places


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Return Spearman's rank correlation; nan for fewer than three policies or equal values."""
    if len(one) < 3 or len(set(one)) == 1 or len(set(other)) == 1:
        return float("nan")
    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def correlation95(lines: Sequence[Mapping[str, Any]], name: str) -> tuple[float, float, float]:
    """Return a measure's rank correlation with exact exploitability, and its 95 % interval.

    The interval is a bootstrap (Efron 1979) over runs, because the policies of one run are alike.
    """

    def of(chosen: Sequence[Mapping[str, Any]]) -> float:
        return rank_correlation([x["chips"][name] for x in chosen], [x["chips"]["exact"] for x in chosen])

    runs = dict[str, list[Mapping[str, Any]]]()
    for line in lines:
        runs.setdefault(line["name"], []).append(line)
    rng, groups = np.random.default_rng(0), list(runs.values())
    drawn = [
        of([line for run in rng.integers(0, len(groups), len(groups)) for line in groups[run]])
        for _ in range(_RESAMPLED)
    ]
    known = [each for each in drawn if not np.isnan(each)] or [float("nan")]
    low, high = np.quantile(known, [0.025, 0.975])
    return of(lines), float(low), float(high)


ORDER_COLUMNS = [
    *("trained_by", "measure", "policies", "rank_correlation", "ci95_low", "ci95_high"),
    *("mean_share", "least_share", "largest_share", "above_exact"),
]


def order(found: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Return rows of ORDER_COLUMNS for each measure, over all policies and over those of each algorithm.

    Shares are relative to exact exploitability.  `above_exact` counts policies whose measure minus half its interval is
    above the exact figure by more than 1e-9 chips.
    """
    names = list(dict.fromkeys(name for line in found for name in line["chips"] if name != "exact"))
    algorithms = list(dict.fromkeys(line["algorithm"] for line in found))
    rows = []
    for algorithm in ["all", *algorithms] if len(algorithms) > 1 else algorithms:
        for name in names:
            lines = [x for x in found if name in x["chips"] and algorithm in ("all", x["algorithm"])]
            if not lines:
                continue
            share = [line["chips"][name] / line["chips"]["exact"] for line in lines]
            least = [line["chips"][name] - line["half"].get(name, 0.0) - line["chips"]["exact"] for line in lines]
            above = sum(gap > 1e-9 for gap in least)
            shares = [float(np.mean(share)), min(share), max(share)]
            rows.append([algorithm, name, len(lines), *correlation95(lines, name), *shares, above])
    return rows


def publish(out: Path, found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write the tables of the measured policies; return lines of text."""
    names = list(dict.fromkeys(name for line in found for name in line["chips"]))
    sampled = list(dict.fromkeys(name for line in found for name in line["half"]))
    keys = ["features", "buckets", "algorithm", "seed", "nodes"]
    rows = [
        [
            *(line[key] for key in keys),
            *(line["chips"].get(name, "") for name in names),
            *(line["half"].get(name, "") for name in sampled),
        ]
        for line in found
    ]
    _write(out / TABLE, [[*keys, *names, *(f"half95 {name}" for name in sampled)], *rows])
    ordered = order(found)
    _write(out / ORDER, [ORDER_COLUMNS, *ordered])
    return [
        f"{algorithm}, {name}: {count} policies, rank correlation {correlation:.2f} ({low:.2f} to {high:.2f}), "
        f"{share:.0%} of the exact figure in the mean, {least:.0%} to {most:.0%}; above it {above} times"
        for algorithm, name, count, correlation, low, high, share, least, most, above in ordered
    ]


def _write(path: Path, rows: Sequence[Sequence[Any]]) -> None:
    write_csv(path, [[f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row] for row in rows])


# --- running ---


def read_done(out: Path) -> list[dict[str, Any]]:
    """Return the measured policies."""
    path = out / POLICIES
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(study: Study, out: Path, plans: Sequence[Arm], effort: StudyEffort | None) -> list[str]:
    """Train and measure the missing policies, and write the tables; return lines of text.

    Raises `ValueError` if OUT holds policies measured with another effort.
    """
    out.mkdir(parents=True, exist_ok=True)
    asked = None if effort is None else asdict(effort)
    found = read_done(out)
    if any(line["effort"] != asked for line in found):
        raise ValueError(f"{out / POLICIES} holds policies that were measured with another effort: give another folder")
    done = {(line["name"], line["point"]) for line in found}
    for plan in plans:
        if all((plan.name, point) in done for point in plan.points):
            continue
        for point, (nodes, strategy) in zip(plan.points, study.train(plan), strict=True):
            if (plan.name, point) in done:
                continue
            last = effort is not None and effort.simplified and point == plan.points[-1]
            chips, half = study.measure(plan, strategy, effort, simpler=last)
            line = {"name": plan.name, "point": point, "nodes": nodes, "effort": asked, "chips": chips, "half": half}
            line |= {key: getattr(plan, key) for key in ("features", "buckets", "algorithm", "seed")}
            line["seconds"] = study.seconds
            durable.append_line(out / POLICIES, json.dumps(line))
            line = f"{plan.name} at {nodes:,} nodes, {study.seconds:.1f} s: {chips['exact']:.4g} chips"
            print(line, file=sys.stderr, flush=True)
    return publish(out, read_done(out))


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--size", type=click.Choice(list(SIZES)), default="small", show_default=True, help="Which policies.")
def main(out: Path, size: str) -> None:
    """Measures of strategies against their exact exploitability, as tables in OUT.

    small: 4 policies. fifty: 52 with four kinds of features. growing: 51 with growing numbers of buckets, with and
    without CFR-BR, measured by best responses only. boards: 36 by CFR-BR on sampled boards and by sampling, with and
    without opponents of a finer abstraction, measured likewise. values: 24 by CFR-BR and by sampling, on buckets of
    histograms and OCHS, and on those of hands' values.
    """
    plans, effort = SIZES[size]
    try:
        lines = run(Study(out, load_document(TWIN)["game"]), out, plans, effort)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    for line in lines:
        click.echo(line)


if __name__ == "__main__":
    main()
