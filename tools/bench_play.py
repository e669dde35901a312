"""`tools/bench play`: what a seat's choice, a whole range and a hand of a match cost, in processor time."""

import time
from collections.abc import Callable
from pathlib import Path

import rich_click as click

from mccfr.evaluation.match import Contender, Match
from mccfr.play.programs import PROGRAMS, ProgramSpec
from mccfr.play.seat import PolicySpec, Seat
from mccfr.policy import Policy
from mccfr.policy.profile import Profile

_LINES = {"r300": "", "r300c/c": "Qs7h2d", "r300c/cr900c/c": "Qs7h2d3c"}
"""Decisions of position 0 or 1 in `hunl-quick`: the line so far, and the board."""


def _microseconds(each: Callable[[], object], count: int, rounds: int) -> float:
    """Least over rounds of one call's processor time: others on the machine only add to it."""
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(count):
            each()
        taken.append((time.process_time() - began) / count * 1e6)
    return min(taken)


@click.command("play")
@click.argument("policy", type=click.Path(exists=True, path_type=Path))
@click.option("--rounds", default=5, show_default=True, help="Measurements of each, of which the least is told.")
@click.option("--hands", default=100, show_default=True, help="Hands of each match.")
def play(policy: Path, rounds: int, hands: int) -> None:
    """Microseconds of a choice on the tree and of 1,326 hands at once, milliseconds of a hand of a match.

    POLICY is one of whole no-limit hold'em whose tree has bets of the pot.
    """
    opened = Policy.open(policy)
    seat = Seat(opened)
    for line, board in _LINES.items():
        state, _ = seat.betting.read(line)
        assert not isinstance(state, int)
        seat.deal(state.player, "KhQd")
        seat.see_line(line)
        if board:
            seat.board(board)
        kept = {name: getattr(seat, name) for name in ("line", "state", "reading", "_bucket", "_range")}

        def choose(kept: dict[str, object] = kept) -> None:
            seat.__dict__.update(kept, _bucket=seat.__dict__["_bucket"])
            seat.choose()

        def again(kept: dict[str, object] = kept) -> None:
            seat.__dict__.update(kept)

        seat.strategy(), seat.range_strategy()
        kept.update(_bucket=seat.__dict__["_bucket"], _range=seat.__dict__["_range"])
        undo = _microseconds(again, 2000, rounds)
        click.echo(f"choose after {line!r}: {_microseconds(choose, 2000, rounds) - undo:.1f} us")
        again()
        click.echo(f"1,326 hands after {line!r}: {_microseconds(seat.range_strategy, 500, rounds):.1f} us")
    one = Contender(str(policy), PolicySpec(opened), Profile(opened.game, opened.strategy()))
    for name, program in PROGRAMS.items():
        table = Match((one, Contender(name, ProgramSpec(program))))
        table.play(0)
        units = iter(range(1, hands // 2 + 1))
        spent = _microseconds(lambda units=units, table=table: table.play(next(units)), hands // 2, 1) / 2000
        units = iter(range(1, hands // 2 + 1))
        bare = _microseconds(lambda units=units, table=table: table.hand(next(units), 0), hands // 2, 1) / 1000
        click.echo(f"a hand against {name}: {bare:.2f} ms, with its correction {spent:.1f} ms")
