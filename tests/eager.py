"""Discounting by sweeping whole tables after each period, as the papers define it."""

import numpy as np
from harness import Trainer, rows

from mccfr.games.game import Game
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.table_layout import table_name


def factors(schedule: Schedule, period: int) -> tuple[float, float, float]:
    """Return the factors of positive regrets, negative regrets and strategy sums after a period.

    Source: Brown & Sandholm 2019.
    """
    if schedule.kind == "none":
        return 1.0, 1.0, 1.0
    if schedule.kind == "linear":
        return (period / (period + 1),) * 3
    if schedule.kind == "initial":  # weight 1 in the first period and 10 after it, on the scale of the later ones
        return ((0.1 if period == 1 else 1.0),) * 3

    def share(exponent: float) -> float:
        if np.isinf(exponent):
            return float(exponent > 0)
        return float(period) ** exponent / (float(period) ** exponent + 1)

    return share(schedule.alpha), share(schedule.beta), (period / (period + 1)) ** schedule.gamma


class EagerSweep(Trainer):
    """A run without discounts in kernels; its whole tables are discounted after each period by `spec`."""

    def __init__(self, game: Game, algorithm: str = "external", *, spec: Schedule, **options: object) -> None:
        super().__init__(game, algorithm, schedule=Schedule("none", spec.period_nodes), **options)
        self.spec, self.swept = spec, 0

    def after_call(self) -> None:
        for period in range(self.swept + 1, self.spec.period(self.nodes)):
            positive, negative, sums = (np.float64(factor) for factor in factors(self.spec, period))
            if period >= self.spec.effective_period(self.nodes):
                positive = negative = sums = np.float64(1)
            for name, table in self.tables.items():
                table[:] *= np.where(table > 0, positive, negative) if name.startswith("regret") else sums
            self.swept = period


def swept_tables(trainer: Trainer) -> dict[str, np.ndarray]:
    """Return a run's regrets and sums in float64, scaled as after an eager sweep.

    Production sweeps only before it continues, so the last period's sweep may be missing. Weighted tables are divided
    by the present weight.
    """
    schedule, swept = trainer.schedule, {}
    for block in np.flatnonzero(trainer.game.tree.row_count):
        for kind in ("regret", "strategy_sum"):
            name = table_name(kind, block)
            swept[name] = trainer.tables[name].astype(np.float64)
            if schedule.sweeps:
                for period in range(trainer.state.ends + 1, schedule.ends(trainer.nodes) + 1):
                    positive, negative, sums = factors(schedule, period)
                    up, down = (positive, negative) if kind == "regret" else (sums, sums)
                    swept[name] *= np.where(swept[name] > 0, up, down)
            else:
                swept[name] /= schedule.weight(trainer.nodes)
    return swept


def largest_difference(game: Game, found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> dict[str, float]:
    """Return the largest difference over all rows for "regret" and "strategy_sum".

    It is relative to the row's largest entry.
    """
    worst = {"regret": 0.0, "strategy_sum": 0.0}
    for block, slots, _ in rows(game):
        for kind in ("regret", "strategy_sum"):
            name = table_name(kind, block)
            row, target = found[name][:, slots], expected[name][:, slots].astype(np.float64)
            scale = np.abs(target).max(axis=1)
            off = np.abs(row - target).max(axis=1)
            relative = np.where(off == 0, 0.0, off / np.where(scale > 0, scale, 1e-300))
            worst[kind] = max(worst[kind], float(np.nan_to_num(relative, nan=np.inf).max()))
    return worst


def against_eager(
    game: Game, spec: Schedule, nodes: int, algorithm: str = "external", **options: object
) -> dict[str, float]:
    """Return the largest relative difference between a run and its eager twin in float64.

    `options` go to the run alone.
    """
    wide = {"regret_dtype": "float64", "sum_dtype": "float64"}
    found = Trainer(game, algorithm, **{"schedule": spec, **wide, **options}).train(nodes=nodes)
    eager = EagerSweep(game, algorithm, spec=spec, **wide).train(nodes=nodes)
    return largest_difference(game, swept_tables(found), eager.tables)
