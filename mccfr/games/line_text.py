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
_TOKEN = re.compile(r"[rb][0-9.]+(?:e[+-]?[0-9]+)?|.")


def line_start(game: Game) -> LineStart:
    """Return the chips put in where a game's lines begin: by each player, and the most of any player.

    The first is an ante or half of a spot's pot; the second includes blinds. Dead antes are left out.
    """
    rules = game.real_rules
    return tree_start(game.tree) if rules is None else rules.line_start


def typed_line(game: Game, line: str) -> str:
    """Convert a typed line to the tree's form, such as `b300c` to `r300c`.

    Raises `ValueError` for amounts of the whole hand (`r300`), which users should not type. Raises it for an illegal
    action only if the line has a bet to convert.
    """
    if is_compact(game.tree):
        refuse_whole_amounts(re.sub(r"\s+|[rb](?=[0-9.]+(?:p|%|x|bb|chips))", "", line).lower(), line_start(game))
    return converted_line(game, line)


def converted_line(game: Game, line: str) -> str:
    """Convert a typed line to the form of the tree: lower case, without spaces, raises as `rN`.

    With blinds of 50 and 100, `b300 C / c B50%` becomes `r300c/cr450`. `b300` counts the chips put in on this street,
    and `r300` those of the whole hand. Sizes are those of menus, with or without a b in front. `3bb` and `2x` count
    chips put in on this street; `50%` and `0.5p` are shares of the pot after the call; `allin` is the stack. Sizes are
    supported if the game has `real_rules`. Text that is no line is returned unchanged, for the parser of lines to
    report. Raises `ValueError`, naming the action, for an illegal action in a line with a bet to convert.
    """
    if not is_compact(game.tree):
        return line
    text, start = re.sub(r"\s+", "", line).lower(), line_start(game)
    rules = game.real_rules
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
        assert match is not None
        position, action = match.end(), match[0]
        where = f"line {line!r}, {match[0]!r}"
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
