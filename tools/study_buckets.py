"""How much of an endgame's value card buckets lose: real-game exploitability by features and number of buckets.

Endgames are drawn with a seed: boards, pots and ranges.  Each is solved on each abstraction by DCFR until twice the
iterations change its real-game exploitability (a best response knows its exact cards) by less than 5 %.  Results are
appended to a file as they come, and a second call goes on where the first one stood.
"""

import json
import random
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import rich_click as click
from make_endgame import RECIPES, Recipe, make

from abstraction.buckets import Abstraction
from abstraction.build import Builder
from abstraction.cards import CARD_COUNT, card_text
from abstraction.recipe import load_recipe
from mccfr.config.tables import HoldemSubgame, Menu
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.bucketed import bucketed
from mccfr.games.game import Game
from mccfr.games.holdem_subgame import holdem_subgame
from mccfr.games.libratus import write_endgame
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.variants import variant
from storage import durable

FEATURES = {
    "default": ('features = "histogram"', 'features = "ochs"'),
    "E[HS]": ('features = "ehs"', 'features = "ehs"'),
}
"""Of the turn and of the river."""
SMALL_MENU = Menu(first=("1p", "allin"), later=("1p", "allin"), max_bets=2)
FIRST_ITERATIONS, MOST_ITERATIONS, SETTLED = 64, 8192, 0.05
POTS = (400, 800, 1600, 3200)


def endgame(number: int, seed: int) -> Recipe:
    """Endgame `number` of a study: every third one begins on the turn."""
    draw = random.Random(f"{seed}/{number}")
    kind = "turn" if number % 3 == 2 else "river"
    cards = draw.sample(range(CARD_COUNT), 4 if kind == "turn" else 5)
    ranges = RECIPES[draw.choice(list(RECIPES))].ranges
    return replace(
        RECIPES[kind],
        board="".join(map(card_text, cards)),
        pot_chips=draw.choice(POTS),
        seed=draw.randrange(2**31),
        ranges=ranges if draw.random() < 0.5 else ranges[::-1],
    )


def build_abstractions(root: Path, sizes: tuple[int, ...]) -> dict[tuple[str, int], Abstraction]:
    """Abstractions of every kind and size, built where they are absent."""
    made = {}
    for (kind, (turn, river)), size in product(FEATURES.items(), sizes):
        directory = root / f"{'default' if kind == 'default' else 'ehs'}-{size}"
        directory.mkdir(parents=True, exist_ok=True)
        recipe = directory / "recipe.toml"
        flop = f'[flop]\nfeatures = "ehs"\nbuckets = {size}\n'
        recipe.write_text(f"{flop}[turn]\n{turn}\nbuckets = {size}\n[river]\n{river}\nbuckets = {size}\n")
        Builder(load_recipe(recipe), directory, 2).build()
        made[kind, size] = Abstraction(directory)
    return made


def solve(game: Game) -> tuple[float, int]:
    """Real-game exploitability in mbb/g once it has settled, and the iterations that took."""
    cfr = VectorCfr(game, variant("dcfr"), "float32", 2)
    cfr.iterate(FIRST_ITERATIONS)
    found = evaluate_exact(game, cfr.average_strategy()).exploitability_mbb
    while cfr.iteration < MOST_ITERATIONS:
        cfr.iterate(cfr.iteration)
        before, found = found, evaluate_exact(game, cfr.average_strategy()).exploitability_mbb
        assert before is not None and found is not None
        if abs(before / found - 1) < SETTLED:
            break
    assert found is not None
    return found, cfr.iteration


def interval(logs: np.ndarray, seed: int = 0) -> tuple[float, float, float]:
    """Geometric mean of ratios whose logarithms are given, with a 95 % bootstrap interval."""
    draws = np.random.default_rng(seed).choice(logs, (10_000, len(logs))).mean(axis=1)
    low, high = np.quantile(draws, (0.025, 0.975))
    return float(np.exp(logs.mean())), float(np.exp(low)), float(np.exp(high))


def report(records: list[dict[str, Any]], sizes: tuple[int, ...]) -> None:
    """Print the tables of docs/abstraction.md."""
    found = {(r["endgame"], r["features"], r["buckets"]): r["exploitability_mbb"] for r in records}
    numbers = sorted(
        {r["endgame"] for r in records if all((r["endgame"], k, s) in found for k in FEATURES for s in sizes)}
    )
    if not numbers:
        return
    print(f"\n{len(numbers)} endgames; geometric means of real-game exploitability, mbb/g\n")
    print(
        "| buckets a street | "
        + " | ".join(FEATURES)
        + " | E[HS] / default (95 %) |\n|---|"
        + "---|" * (len(FEATURES) + 1)
    )
    for size in sizes:
        logs = {kind: np.log([found[n, kind, size] for n in numbers]) for kind in FEATURES}
        ratio, low, high = interval(logs["E[HS]"] - logs["default"])
        means = " | ".join(f"{np.exp(values.mean()):,.0f}" for values in logs.values())
        print(f"| {size} | {means} | {ratio:.2f} ({low:.2f} to {high:.2f}) |")
    for kind in FEATURES:
        logs = np.log([found[n, kind, sizes[0]] / found[n, kind, sizes[-1]] for n in numbers])
        ratio, low, high = interval(logs)
        print(f"\n{kind}: {sizes[0]} to {sizes[-1]} buckets divide it by {ratio:.2f} ({low:.2f} to {high:.2f})")


@click.command()
@click.option("--endgames", default=24, show_default=True, type=click.IntRange(1), help="How many are drawn.")
@click.option("--buckets", "sizes", default="25,100,400", show_default=True, help="Numbers of buckets a street.")
@click.option("--seed", default=0, show_default=True, help="Of boards, pots and ranges.")
@click.option("--out", default="runs/study", show_default=True, type=click.Path(path_type=Path), help="Directory.")
def buckets(endgames: int, sizes: str, seed: int, out: Path) -> None:
    """Exploitability of endgames solved on buckets, finer and coarser, by default features and by E[HS] percentiles."""
    counts = tuple(int(size) for size in sizes.split(","))
    abstractions = build_abstractions(out / "abstractions", counts)
    results = out / f"results-{seed}.jsonl"
    records = [json.loads(line) for line in durable.read_lines(results)] if results.exists() else []
    done = {(r["endgame"], r["features"], r["buckets"]) for r in records}
    for number in range(endgames):
        drawn = endgame(number, seed)
        file = out / "endgames" / f"{seed}-{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_endgame(file, make(drawn))
        menu = SMALL_MENU if drawn.street == RECIPES["turn"].street else Menu()
        lossless = holdem_subgame(HoldemSubgame(file=str(file.resolve()), menu=menu), Path())
        for (kind, size), abstraction in abstractions.items():
            if (number, kind, size) in done:
                continue
            began = time.perf_counter()
            found, iterations = solve(bucketed(lossless, abstraction))
            record = {"endgame": number, "board": drawn.board, "features": kind, "buckets": size}
            record |= {"exploitability_mbb": found, "iterations": iterations}
            durable.append_line(results, json.dumps(record | {"seconds": round(time.perf_counter() - began, 1)}))
            records.append(record)
            print(
                f"endgame {number} ({drawn.board}), {kind} {size}: {found:,.1f} mbb/g, {iterations} iterations",
                flush=True,
            )
    report(records, counts)


if __name__ == "__main__":
    buckets()
