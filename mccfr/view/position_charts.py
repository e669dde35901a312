"""Charts by position: what each player does before the flop while the players before it fold."""

from typing import Any

from mccfr.games.line_text import typed_line
from mccfr.view.spot_view import Spots


def position_chart(spots: Spots, line: str = "") -> dict[str, Any]:
    """Return {"entries": [...]}: each player's decision after a line, if the players before it fold.

    With the line "" no player has bet before; after a line that ends in a raise all decisions face this raise. Each
    entry has `line` (to this decision), `role` (name of the position) and `actions`. It also has the `frequencies` of
    the actions over the whole range, and their `probabilities` for each class of hands.

    Raises `ValueError` for an invalid line, and for a strategy that does not start before the flop.
    """
    if not spots.starts_preflop:
        raise ValueError(f"{spots.title} has no decisions before the flop: charts by position are for hold'em")
    found = [spots.spot(each) for each, _ in fold_lines(spots, line)]
    names = "line", "role", "actions", "frequencies"
    return {
        "entries": [
            {name: at[name] for name in names} | {"probabilities": at["classes"]["probabilities"]} for at in found
        ]
    }


def fold_lines(spots: Spots, line: str) -> list[tuple[str, int]]:
    """Return a list of (line, player to act): a preflop line, then that line plus one, two, ... folds.

    The list ends before a player would act a second time, when there is no bet to fold to, or after preflop.
    """
    state: Any = spots.betting.read(typed_line(spots.source.game, line))[0]
    found = dict[int, str]()
    while not isinstance(state, int) and not state.street and state.player not in found:
        found[state.player] = line
        if not state.facing:
            break
        state, line = spots.betting.apply(state, "f"), line + "f"
    return [(each, player) for player, each in found.items()]
