"""Replaces `auto:N` in a spot's bet sizes by N sizes, chosen at each decision to lose least EV.

A spot is the rest of a hand with given board, ranges, pot and stacks.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mccfr.cards.endgame_cards import endgame_cards
from mccfr.config.game_tables import HoldemSubgame
from mccfr.config.spot_table import (
    AVERAGING_POWER,
    FINE_SIZES,
    STREETS,
    auto_counts,
    spot_document,
    spot_menu,
    with_sizes,
)
from mccfr.config.toml_files import config_from
from mccfr.games.betting_tree import build_tree
from mccfr.games.game import Game
from mccfr.games.holdem_subgame import endgame_rules, spot_endgame, spot_rake
from mccfr.games.line_sizes import added_lines
from mccfr.runs.reporter import Reporter
from mccfr.solvers.public.size_choice import MOST_BOARDS, SizeChoice, SizeMenus
from mccfr.solvers.variants import variant

BETS, RAISES = ("33%,75%,150%", "75%", "75%"), ("75%,allin", "allin", "allin")
"""Bet and raise sizes in place of auto:N at decisions for which sizes are not chosen yet.

An item for each street, from the spot's first street on.
"""
_FINE, _NONE = (",".join(FINE_SIZES),) * 3, ("",) * 3
_SHOWN = 12  # lines in a message


@dataclass(frozen=True)
class TypedSizes:
    """Bet and raise sizes of a spot as a user typed them, and further keys of `[game.menu]`.

    bets, raises  sizes such as "50%,100%/auto:2", streets separated by "/"; auto:N: the program chooses N sizes
    menu          the further keys and their values
    """

    bets: str
    raises: str
    menu: Mapping[str, Any]

    def counts(self, streets: int) -> list[tuple[int | None, int | None]]:
        """Return for each street a pair (N for bets, N for raises) of the requests auto:N.

        None instead of N: the user has given sizes.

        streets  number of streets from the spot's first one on

        Raises `ValueError` for an invalid N.
        """
        texts = {"--bets": self.bets, "--raises": self.raises}
        bets, raises = (auto_counts(option, text, streets) for option, text in texts.items())
        return list(zip(bets, raises, strict=True))

    def filled(self, first_street: int, bets: Sequence[str] = _NONE, raises: Sequence[str] = _NONE) -> dict[str, Any]:
        """Return `[game.menu]` with sizes instead of the typed auto:N, a request to choose N sizes.

        A size beyond the stack is all-in.

        first_street  street on which the spot begins: 1 for the flop
        bets, raises  for each street from there the sizes that replace auto:N, such as "33%,75%"; "": no size
        """
        streets = len(STREETS) - first_street
        texts = with_sizes(self.bets, bets[:streets]), with_sizes(self.raises, raises[:streets])
        sizes = spot_menu(*texts, first_street)
        return {"allin_spr": 0.0, **sizes, **self.menu}


def chosen_menu(
    game: Mapping[str, Any],
    sizes: TypedSizes,
    first_street: int,
    workers: int,
    reporter: Reporter,
    seconds: float | None = None,
) -> dict[str, Any]:
    """Choose the bet sizes for which a user typed auto:N; return the spot's `[game.menu]` with them.

    Its key `add` lists each chosen bet as a betting line. The number of decisions and the first lines are reported.

    game          keys of `[game]` without the menu
    sizes         typed sizes, some of them auto:N: the program chooses N sizes at each decision
    first_street  street on which the spot begins: 1 for the flop
    workers       number of threads
    seconds       longest duration of the choice; None: no limit

    Raises `ValueError` after `seconds`, and for locks and keys of the menu that do not go together with auto:N. Also
    for an invalid board, range, pot, stack or bet size.
    """
    others = [*sorted({*sizes.menu} - {"allin_spr"}), *(["lock"] if game.get("locks") else [])]
    if others:
        raise ValueError(
            f"{others[0]} beside bet sizes auto:N is not allowed: the tree's bets are known only after the choice. "
            "Leave it out, or repeat it with the chosen sizes: --bets '' --raises '' and an --add-line for each"
        )
    choice = size_choice(game, sizes, first_street, workers)
    began = time.monotonic()

    def progress(count: int) -> None:
        if seconds is not None and time.monotonic() - began > seconds:
            raise ValueError(
                f"{seconds:g} s have passed before the bet sizes were chosen, {count} decisions are done: give a "
                "longer --time, or sizes in place of auto:N"
            )
        reporter.phase(f"choosing bet sizes, {count} decisions done")

    chosen = choice.choose(progress)
    lines = added_lines(choice.menus.fine, chosen)
    more = f" and {len(lines) - _SHOWN} more, in game.menu.add of the run" if len(lines) > _SHOWN else ""
    reporter.message(f"bet sizes chosen for {len(chosen)} decisions: {', '.join(lines[:_SHOWN])}{more}")
    return {**sizes.filled(first_street), "add": lines}


def size_choice(game: Mapping[str, Any], sizes: TypedSizes, first_street: int, workers: int) -> SizeChoice:
    """Return a `SizeChoice`, which chooses a spot's sizes when its method `choose` is called.

    game          keys of `[game]` without the menu
    sizes         typed sizes, some of them auto:N: the program chooses N sizes at each decision
    first_street  street on which the spot begins: 1 for the flop
    workers       number of threads

    Raises `ValueError` for an invalid board, range, pot, stack or bet size.
    """
    fine, default = (
        _spot_config(game, sizes.filled(first_street, *texts)) for texts in ((_FINE, _FINE), (BETS, RAISES))
    )
    endgame, _ = spot_endgame(fine)
    rules, plain = (endgame_rules(config, Path(), endgame) for config in (fine, default))
    cards = endgame_cards(endgame.board, endgame.reach, rules.streets, MOST_BOARDS[rules.streets])
    spot = Game(
        "holdem-subgame",
        build_tree(plain),
        cards,
        big_blind_chips=rules.minimum_bet,
        pot_chips=endgame.pot_chips,
        rake=spot_rake(fine),
    )
    solver = variant("dcfr", averaging_power=AVERAGING_POWER)
    return SizeChoice(spot, SizeMenus(rules, plain, sizes.counts(rules.streets)), solver, workers)


def _spot_config(game: Mapping[str, Any], menu: Mapping[str, Any]) -> HoldemSubgame:
    config = config_from(spot_document({**game, "menu": menu}, 1.0, 1), "the spot", (Path(),)).game
    assert isinstance(config, HoldemSubgame)
    return config
