"""Counts the iterations after which CFR plays only the best of payoffs 0, 1 and -1,000,000.

Source: the discounting paper, section 3.  The first iteration produces regrets of about a third of a million, which
later iterations must cancel.  The tool reads the current strategy, not the average, so it calls the kernels directly.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from mccfr.config.game_tables import MatrixGame
from mccfr.experiments.definition import AXES
from mccfr.experiments.plot import Panel, can_plot, draw
from mccfr.experiments.result_table import Curve, write_csv
from mccfr.games.matrix import matrix
from mccfr.solvers.histories.history_cfr import HistoryCfr
from mccfr.solvers.variants import PRESETS

PAYOFFS = ((0.0,), (1.0,), (-1_000_000.0,))
BEST = 1
VARIANTS = {"CFR": "cfr", "CFR+": "cfr+", "LCFR": "lcfr", "DCFR(3/2, 0, 2)": "dcfr"}
_LAST = 2_000_000
_BATCH = 1024
_POINTS_PER_DOUBLING = 4


def best_share(cfr: HistoryCfr) -> float:
    """Return the probability of the best action in the next iteration."""
    return float(cfr.current_strategy().probability[0][0, BEST])


def first_pure(preset: str, last: int = _LAST) -> tuple[int | None, dict[int, float]]:
    """Return the first iteration t that plays the best action only, and {t: probability of that action}.

    t is None if there is none up to `last`.  The batch in which it happens is repeated iteration by iteration.
    """
    game = matrix(MatrixGame(payoffs=PAYOFFS))
    cfr, shown, share = HistoryCfr(game, PRESETS[preset]), {}, 0.0
    points = {round(2 ** (k / _POINTS_PER_DOUBLING)) for k in range(_POINTS_PER_DOUBLING * last.bit_length())}
    while cfr.iteration < last:
        before = {name: table.copy() for name, table in cfr.tables.items()}
        start = cfr.iteration
        following = min((point - 1 for point in points if point - 1 > start), default=last)
        count = min(_BATCH, following - start, last - start)
        cfr.iterate(count)
        share = best_share(cfr)
        if share == 1:
            again = HistoryCfr(game, PRESETS[preset], tables=before, iteration=start)
            while best_share(again) < 1:
                again.iterate(1)
            shown[again.iteration + 1] = 1.0
            return again.iteration + 1, shown
        if cfr.iteration + 1 in points:
            shown[cfr.iteration + 1] = share
    return None, shown


def _curve(name: str, shown: dict[int, float]) -> Curve:
    steps = np.array(list(shown), np.float64)
    rest: npt.NDArray[np.float64] = 1 - np.array(list(shown.values()))
    none = np.full(len(steps), np.nan)
    return Curve(
        name, "rest", steps, dict.fromkeys(AXES.values(), steps), rest, none, none, np.ones(len(steps), np.int64)
    )


def make_example(out: Path) -> list[tuple[str, int | None]]:
    """Write example.csv (first t of each variant) and example.png into `out`; return the CSV's rows."""
    out.mkdir(parents=True, exist_ok=True)
    found = {name: first_pure(preset) for name, preset in VARIANTS.items()}
    rows = [(name, first) for name, (first, _) in found.items()]
    write_csv(out / "example.csv", [("variant", "first_iteration"), *rows])
    if can_plot():
        curves = [_curve(name, shown) for name, (_, shown) in found.items()]
        label = "probability of the two worse actions"
        draw([Panel("Payoffs 0, 1 and -1,000,000", "iterations", label, curves)], out / "example.png")
    return rows
