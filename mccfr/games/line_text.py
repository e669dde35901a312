"""Parses betting lines typed by users: any case, spaces, sizes in chips, big blinds or % of the pot."""

import re
from math import floor, inf

from mccfr.games.betting import BettingState, amount_text, raise_bounds
from mccfr.games.game import Game
from mccfr.games.menu import MenuGame, parse_size
from mccfr.games.translation import apply_action
from mccfr.trees.betting_lines import is_compact
from mccfr.trees.street_amounts import LineStart, check_line, refuse_whole_amounts, tree_start, whole_line

_SIZED = re.compile(r"[rb]?(?P<size>allin|[0-9]+(?:\.[0-9]+)?(?:p|%|x|bb|chips))")
_TOKEN = re.compile(r"[rb](?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|[fc/]")


def line_start(game: Game) -> LineStart:
    """Return the chips put in where a game's betting lines begin, as a `LineStart`.

    Its field `before` is the chips of each player that are no bet: an ante, or half the starting pot of an endgame. Its
    field `level` is the most that any player has put in, blinds included. Antes that are dead money are left out.
    """
    rules = game.real_rules
    return tree_start(game.tree) if rules is None else rules.line_start


def typed_line(game: Game, line: str) -> str:
    """Convert a betting line typed by a user to the tree's form, such as `b300c` to `r300c`.

    The user's b300 counts the chips put in on the street; the tree's r300 counts those of the whole hand. Raises
    `ValueError` if the user typed an amount such as r300 that has two meanings. An illegal action raises `ValueError`
    only in a line with a bet to convert; other lines are not checked.
    """
    if is_compact(game.tree):
        refuse_whole_amounts(re.sub(r"\s+|[rb](?=[0-9.]+(?:p|%|x|bb|chips))", "", line).lower(), line_start(game))
    return converted_line(game, line)


def converted_line(game: Game, line: str) -> str:
    """Convert a typed betting line to the tree's form: lower case, no spaces, raises as `rN`.

    With blinds of 50 and 100, `b300 C / c B50%` becomes `r300c/cr450`. `b300` counts the chips put in on this street,
    and `r300` those of the whole hand. `3bb` (big blinds) and `2x` (twice the last bet) count chips put in on this
    street. `50%` and `0.5p` are shares of the pot after the call; `allin` is the stack. A b before a size is optional.
    Such sizes are supported if the game has `real_rules`, the full betting rules. A line without a bet to
    convert is not checked: its invalid characters are kept for a later parser to report. Raises `ValueError` for an
    illegal action, which it names, or an invalid character in a line with such a bet.
    """
    if not is_compact(game.tree):
        return line
    text, start, rules = re.sub(r"\s+", "", line).lower(), line_start(game), game.real_rules
    if rules is None:
        converted = whole_line(text, start)
        if converted != text:
            check_line(game.tree, converted, start)
        return converted
    if not re.search("b[0-9]", text) and _SIZED.search(text) is None:
        return text
    state: BettingState | int = rules.start()
    whole = all(float(chips).is_integer() for chips in (*rules.put_in, rules.minimum_bet, rules.stack))
    sizes = MenuGame(rules.stack, game.big_blind_chips or 1.0, stacks=tuple(rules.stacks), dead=float(sum(rules.dead)))
    converted, position = "", 0
    while position < len(text) and isinstance(state, BettingState):
        sized = _SIZED.match(text, position)
        match = sized or _TOKEN.match(text, position)
        if match is None:
            where = f"line {line!r}, {text[position]!r}"
            raise ValueError(f"{where} is not an action: write f, c, a bet such as b300 or 50%, and / between streets")
        position, action, where = match.end(), match[0], f"line {line!r}, {match[0]!r}"
        if sized:
            menu = sizes._replace(streets=state.street + 1)
            stack = menu.all_in(state)
            target = parse_size(sized["size"], "line").target(state, menu, stack)
            amount = min(float(floor(target + 0.5)) if whole and target < inf else target, stack)
            action = f"r{amount_text(amount)}"
        elif action[0] == "b" and len(action) > 1:
            target, bounds = float(action[1:]) + state.put_in_before, raise_bounds(rules, state)
            if bounds and not bounds[0] <= target <= bounds[1]:
                low, high = (amount_text(bound - state.put_in_before) for bound in bounds)
                raise ValueError(f"{where}: a bet must put in {low} to {high} chips on this street")
            action = f"r{amount_text(target)}"
        if action != "/":
            state = apply_action(rules, state, action, where)
        converted += action
    return converted + text[position:]
