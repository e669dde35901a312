"""Solves a hold'em hand from a given board on, with both players' ranges, the pot and stacks."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mccfr.api.api_runs import CallbackReporter, require_main_thread, trained
from mccfr.api.api_types import Pathlike, toml_value
from mccfr.common.arguments import checked
from mccfr.config.value_limits import share_of
from mccfr.runs.results.line_spot import requested_spot
from mccfr.runs.session.spot_run import SpotOptions, start_spot
from mccfr.runs.session.start import Terms


@checked
def spot(
    *,
    board: str,
    oop: str | Sequence[float] | None = None,
    ip: str | Sequence[float] | None = None,
    pot: float | None = None,
    stack: float | None = None,
    policy: Pathlike | None = None,
    line: str | None = None,
    bets: str | None = None,
    raises: str | None = None,
    menu: Mapping[str, Any] | None = None,
    rake: str | None = None,
    rake_cap: float | None = None,
    locks: Mapping[str, str] | None = None,
    to: str | None = None,
    run: Pathlike | None = None,
    workers: int | None = None,
    force: bool = False,
    progress: Callable[[object], object] | None = None,
) -> dict[str, Any]:
    """Solve a two-player hold'em hand from `board` on; return the dictionary of `mccfr spot --json`.

    board         three to five cards: "QsJh2h"
    oop, ip       ranges out of and in position: "TT+,AQs+", "@FILE", or weights of 169 hand classes or 1,326 hands.
    pot, stack    chips in the pot, and chips behind of each player
    policy, line  in place of ranges, pot and stack: a policy (saved strategy) or run of a larger game, and the actions
                  in it up to the start of a street: "b300c/"
    bets, raises  bet sizes, streets separated by "/": "33%,75%/50%"; or "auto:2": the program chooses two for each
                  decision. Both None: those of the policy, if given, else "50%". One None: "50%"; raises None and
                  bets "auto:N": the same as bets
    menu          further settings of the allowed bets, keys of `[game.menu]`, such as "donk" or "allin_spr"
    rake          share taken of every pot, such as "5%", at most `rake_cap` chips; None: that of the policy
    locks         fixed strategies at decisions, by the actions that lead there: {"cb94": "f 40%; c 60%"}
    to            stop at an exploitability of this share of the pot; None: "0.3%"
    run           run directory; None: runs/spot-BOARD-..., which continues if only `to` or the lines below differ
    workers       number of threads; None: one for each processor
    force         start even if memory or disk are too small
    progress      called with message texts, each `Evaluation`, and a `Progress` every ten seconds

    docs/files.md lists the keys of the result.  Raises `ValueError` or `OSError` with one sentence.  A signal writes a
    checkpoint, and raises `KeyboardInterrupt` (Ctrl-C) or `SystemExit(75)`.
    """
    require_main_thread()
    typed = {"oop": toml_value(oop), "ip": toml_value(ip), "pot": pot, "stack": stack}
    game, own = requested_spot(board, typed, None if policy is None else Path(policy), line)
    optional = {"rake": rake, "rake_cap": rake_cap, "locks": toml_value(locks) if locks else None}
    game |= {key: value for key, value in optional.items() if value is not None}
    try:
        target = None if to is None else share_of(to)
    except ValueError as error:
        raise ValueError(f"to: {error}") from None
    directory = None if run is None else Path(run)
    options = SpotOptions(bets, raises, target, workers, toml_value(menu or {}), own, directory)
    terms = Terms(CallbackReporter(progress), force=force)
    started = start_spot(game, options, terms)
    return started.answer(trained(started.run, started.game, terms).directory)
