"""Parses betting lines typed by users: any case, spaces, raise sizes in big blinds or % of the pot."""

import re
from math import floor, inf

from mccfr.games.betting import BettingState, amount_text
from mccfr.games.game import Game
from mccfr.games.menu import parse_size
from mccfr.games.translation import apply_action
from mccfr.trees.betting_lines import is_compact

_SIZED = re.compile(r"r?(?P<size>allin|[0-9]+(?:\.[0-9]+)?(?:p|%|x|bb))")
_TOKEN = re.compile(r"r[0-9.]+(?:e[+-]?[0-9]+)?|.")


def said_line(game: Game, line: str) -> str:
    """Convert a typed line to the form of `mccfr.trees.betting_lines`.

    With blinds of 50 and 100, `3bb C / c R50%` becomes `r300c/cr450`. Sizes are those of menus, with or without an r in
    front. `3bb` and `2x` count chips put in on this street; `50%` and `0.5p` are shares of the pot after the call;
    `allin` is the stack. Sizes are supported if the game has `real_rules`. Text that is no line is returned unchanged,
    for the parser of lines to report. Raises `ValueError`, naming the action, if a line with sizes has an illegal
    action.
    """
    if not is_compact(game.tree):
        return line
    text = re.sub(r"\s+", "", line).lower()
    rules = game.real_rules
    if rules is None or _SIZED.search(text) is None:
        return text
    state: BettingState | int = rules.start()
    whole = all(float(chips).is_integer() for chips in (*rules.put_in, rules.minimum_bet, rules.stack))
    found, place = "", 0
    while place < len(text) and isinstance(state, BettingState):
        sized = _SIZED.match(text, place)
        match = sized or _TOKEN.match(text, place)
        assert match is not None
        place, action = match.end(), match[0]
        if sized:
            target = parse_size(sized["size"], "line").target(state, game.big_blind_chips or 1.0, rules.stack, 1)
            amount = min(float(floor(target + 0.5)) if whole and target < inf else target, rules.stack)
            action = f"r{amount_text(amount)}"
        if action != "/":
            state = apply_action(rules, state, action, f"line {line!r}, {match[0]!r}")
        found += action
    return found + text[place:]
