"""One evaluation as a record: the fields of `evaluate --json` and of a line of evaluations.jsonl."""

from typing import Any

from abstraction.compiling import working_seconds
from mccfr.evaluation.exact import evaluate_exact
from mccfr.evaluation.head_to_head import Side, head_to_head
from mccfr.games.game import Game
from mccfr.tables.strategy import Strategy

METHODS = ("exact", "head-to-head")


def check_method(game: Game, method: str) -> None:
    """Raise `ValueError` where a game cannot be evaluated by a method, or there is no such method."""
    if method not in METHODS:
        raise ValueError(f"evaluation method {method!r} is not one of: {', '.join(METHODS)}")
    if method == "exact" and game.cards.dealt and not game.cards.can_list:
        raise ValueError(f"{game.name} is too large for exact exploitability: use the method head-to-head")
    if method == "head-to-head" and not game.cards.dealt:
        raise ValueError(f"{game.name} deals no cards beside its tree: use the method exact")


def exact_record(game: Game, strategy: Strategy) -> dict[str, Any]:
    """Value and exploitability of a strategy."""
    check_method(game, "exact")
    began = working_seconds()
    found = evaluate_exact(game, strategy)
    return _record(
        "exact",
        "exact",
        began,
        value_chips=found.value_chips,
        exploitability_chips=found.exploitability_chips,
        exploitability_mbb=found.exploitability_mbb,
        best_response_chips=[float(chips) for chips in found.best_response_chips],
    )


def head_to_head_record(side: Side, against: Side, name: str, *, boards: int, seed: int) -> dict[str, Any]:
    """Chips a hand that `side` wins from `against`, which `name` names, as the mean over both seats."""
    check_method(side.game, "head-to-head")
    began = working_seconds()
    found = head_to_head(side, against, boards=boards, seed=seed)
    return _record(
        "head-to-head",
        "estimate",
        began,
        value_chips=found.mean_chips,
        ci95_chips=list(found.ci95_chips),
        against=name,
        boards=found.boards,
        seed=seed,
    )


def _record(method: str, bound: str, began: float, **fields: Any) -> dict[str, Any]:
    record: dict[str, Any] = {
        "method": method,
        "bound": bound,
        "value_chips": None,
        "exploitability_chips": None,
        "exploitability_mbb": None,
        "best_response_chips": None,
        "ci95_chips": None,
        "from": None,
        "against": None,
        "boards": None,
        "hands": None,
        "seed": None,
    }
    return record | fields | {"seconds": round(working_seconds() - began, 6)}
