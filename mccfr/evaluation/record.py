"""One evaluation as a record: the fields of `evaluate --json` and of a line of evaluations.jsonl."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.game import Game
from mccfr.strategy import Strategy, average_strategy


def evaluation_record(
    game: Game, tables: Mapping[str, npt.NDArray[np.generic]] | Strategy, method: str = "exact"
) -> dict[str, Any]:
    """Evaluate the average strategy of `strategy_sum` tables (or a strategy) and return the record.

    Raises `ValueError` for a method that does not exist.
    """
    if method != "exact":
        raise ValueError(f"evaluation method {method!r} is not one of: 'exact'")
    began = time.perf_counter()
    strategy = tables if isinstance(tables, Strategy) else average_strategy(game, tables)
    found = evaluate_exact(game, strategy)
    return {
        "method": "exact",
        "bound": "exact",
        "value_chips": found.value_chips,
        "exploitability_chips": found.exploitability_chips,
        "exploitability_mbb": found.exploitability_mbb,
        "best_response_chips": [float(chips) for chips in found.best_response_chips],
        "ci95_chips": None,
        "from": None,
        "boards": None,
        "hands": None,
        "seed": None,
        "seconds": round(time.perf_counter() - began, 6),
    }
