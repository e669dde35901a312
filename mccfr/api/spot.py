"""A spot of hold'em, from ranges, board, pot and stacks to its answer."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mccfr.api.records import Pathlike, plain
from mccfr.api.running import CallbackReporter, require_main_thread, trained
from mccfr.arguments import checked
from mccfr.runs.results.line_spot import asked_spot
from mccfr.runs.session.spot import Asked, start_spot
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
    rake: float | None = None,
    rake_cap: float | None = None,
    locks: Mapping[str, str] | None = None,
    to: float = 0.003,
    run: Pathlike | None = None,
    workers: int | None = None,
    force: bool = False,
    progress: Callable[[object], object] | None = None,
) -> dict[str, Any]:
    """Solve a spot as `mccfr spot` does, and say what it says with --json.

    board         "QsJh2h": three to five cards
    oop, ip       ranges of who acts first and last: a text, "@FILE", 169 or 1,326 numbers
    pot, stack    chips in the pot, and those that each has behind
    policy, line  in place of these four: a policy or run, and a line of it to where a street begins, "r300c/"
    bets, raises  sizes, streets apart by "/": "0.33p,0.75p/0.5p"; None: "0.5p", and of a policy its own
    menu          keys of `[game.menu]` beside them
    rake          share of every pot that its winner does not get, at most `rake_cap` chips; None: a policy's own
    locks         by line what is played there and not learnt: {"cr184": "f 40%; c 60%"}
    to            stop at this share of the pot
    run           run directory; None: runs/spot-BOARD-..., one for each spot, so that asking again goes on
    workers       threads; None: one a processor
    force         although memory or disk are too small
    progress      told what there is to tell

    Returns what docs/files.md lists.  Raises and ends at signals as `mccfr.solve`.
    """
    require_main_thread()
    reporter = CallbackReporter(progress)
    typed = {"oop": plain(oop), "ip": plain(ip), "pot": pot, "stack": stack}
    given, own = asked_spot(board, typed, None if policy is None else Path(policy), line)
    others = {"rake": rake, "rake_cap": rake_cap, "locks": plain(locks) if locks else None}
    given |= {key: value for key, value in others.items() if value is not None}
    asked = Asked(bets, raises, to, workers, plain(menu or {}), own, None if run is None else Path(run))
    terms = Terms(reporter, force=force)
    started = start_spot(given, asked, terms)
    return started.answer(trained(started.run, started.game, terms).directory)
