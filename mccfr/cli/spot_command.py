"""The commands `spot` and `upi`: solve a hold'em endgame with given ranges, board, pot and stacks."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import rich_click as click

from mccfr.cli.progress_display import reporter
from mccfr.cli.shared_options import Duration, Share, answer, end_unreached, force_option, json_option, path_type
from mccfr.cli.stopping import end_resumable, resumable_command
from mccfr.common.signals import SignalInterrupt
from mccfr.runs.reporter import duration_text
from storage.free_space import bytes_text

if TYPE_CHECKING:
    from mccfr.runs.reporter import Reporter
    from mccfr.runs.session.spot_run import SpotRun

_AS_A_RULE = 200  # iterations that a spot usually takes
_NAMES = "out of position", "in position"


@click.command()
@click.argument("board", required=False)
@click.option("--oop", metavar="RANGE", help="Range out of position: QQ+,AKs:0.5, @FILE, 169 or 1,326 numbers.")
@click.option("--ip", metavar="RANGE", help="Range in position.")
@click.option("--pot", metavar="CHIPS", type=float, help="Chips in the pot.")
@click.option("--stack", metavar="CHIPS", type=float, help="Chips that each player has left.")
@click.option("--policy", type=path_type, help="Take ranges, pot and stacks of this policy or run, after --line.")
@click.option("--line", help="Betting line of --policy, to the start of a street: b300c/.")
@click.option("--board", "other_board", metavar="BOARD", help="The same as BOARD.")
@click.option("--bets", metavar="SIZES", help="Bet sizes, / between streets, auto:2; default: 50% or --policy's.")
@click.option(
    "--raises", metavar="SIZES", help="Raise sizes: 45%, 3x, 2e, allin, auto:1; default: 50% or --bets' auto."
)
@click.option("--donk", metavar="SIZES", help="Donk bet sizes; default: as --bets.")
@click.option("--allin-spr", type=click.FloatRange(0), metavar="X", help="Bet all-in if at most X pots would be left.")
@click.option("--add-line", "add", multiple=True, metavar="LINE", help="Add the last bet of this line: cb10c/b5.")
@click.option("--remove-line", "remove", multiple=True, metavar="LINE", help="Remove the last bet of this line.")
@click.option("--big-blind", metavar="CHIPS", type=float, help="Smallest bet, and the unit of bb; default: 1.")
@click.option("--rake", type=Share(), help="Rake, as a share of every pot: 5%.")
@click.option("--rake-cap", metavar="CHIPS", type=float, help="Largest rake of a pot; default: no limit.")
@click.option("--lock", "locks", multiple=True, metavar="LINE=ACTIONS", help='Fix the strategy there: "cb94=c 60%".')
@click.option("--to", type=Share(), help="Exploitability to reach, of the pot; default: 0.3%.")
@click.option("--time", "seconds", type=Duration(), help="Longest time to train: 90s, 10m.")
@click.option("--workers", type=click.IntRange(0, 1024), help="Number of threads; default: one for each processor.")
@click.option("--run", "directory", type=path_type, help="Run directory; default: a new one in runs/ for this spot.")
@click.option("--set", "overrides", multiple=True, metavar="TABLE.KEY=VALUE", help="Override one key of the config.")
@force_option
@json_option
@resumable_command(lambda directory, **_: directory)
def spot(board: str | None, as_json: bool, force: bool, **options: Any) -> None:
    """Solve a spot of hold'em, and print both players' first actions and the EV of every hand.

    A spot is a game from a given board on, with both players' ranges, the pot and the stacks. Training stops at the
    exploitability of --to. The same command continues the run; view, query, export and resume open it. Bet sizes: 50%
    of the pot, 3x the last bet, 2.5bb, 300chips, allin. 2e is the share of the pot that, bet twice, puts in the stack;
    e the same with a bet on each street left. Write commas between sizes and "/" between streets; later streets repeat
    the last list. EV counts chips expected from the pot, less those still to be put in; folding has EV 0. Amounts are
    chips, or big blinds with --big-blind.

    Example: mccfr spot QsJh2h --oop "TT+,AQs+" --ip "77+,ATs+,KQs" --pot 180 --stack 910 --bets 50%/70%
    """
    from mccfr.runs.session.spot_run import start_typed_spot
    from mccfr.runs.session.start import Terms

    other = options.pop("other_board")
    if board is not None and other is not None:
        raise ValueError(f"BOARD = {board} and --board = {other} are both given: give the board once")
    board = other if board is None else board
    with reporter() as report:
        started = start_typed_spot({"board": board, **options}, Terms(report, force=force))
        try:
            record = _solved(started, report, force=force)
        except SignalInterrupt as stop:
            end_resumable(stop, started.run.directory)
    answer(record, as_json, _text)
    if not record["reached"]:
        reached = f"{record['exploitability_pot']:.3%} of the pot after {record['iterations']:,} iterations"
        end_unreached(record["to_pot"], reached, _advice(options["seconds"]))


def _solved(started: "SpotRun", report: "Reporter", *, force: bool) -> dict[str, Any]:
    """Train the run of `mccfr spot`; return the solution (EVs, frequencies) that it prints.

    started  the run and its game
    force    True: do not check memory

    Raises `SignalInterrupt` if a signal has stopped the training.
    """
    from mccfr.runs.session.train_and_export import train_and_export

    report.message(_beginning(started))
    outcome, _ = train_and_export(started.run, started.game, report, force=force)
    if outcome.signal is not None:
        raise SignalInterrupt(outcome.signal, directory=outcome.directory)
    report.phase("computing the EV of every hand")
    return started.answer(outcome.directory)


def _beginning(started: Any) -> str:
    """Return a message on a run's infosets and memory, and the expected time of training.

    started  `SpotRun`: the run of `mccfr spot`, and its game
    """
    game, each, to = started.game, started.seconds_an_iteration, started.run.config.run.goal
    size = f"{int(game.infosets.sum()):,} infosets, {bytes_text(started.memory_bytes)} of memory"
    if _AS_A_RULE * each < 1:
        return f"{started.run.directory}: {size}; some seconds to {to:.2%} of the pot"
    return (
        f"{started.run.directory}: {size}; about {duration_text(each)} an iteration, and "
        f"{duration_text(_AS_A_RULE * each)} for the {_AS_A_RULE} that {to:.2%} of the pot usually takes"
    )


def _text(answer: Mapping[str, Any]) -> str:
    """Return the solution of `mccfr spot` as text, in big blinds if known, else in chips.

    answer  the fields that --json prints

    Amounts are also called chips if a big blind is 1 chip. The text has both players' equity, EV and gain of a best
    response. The frequencies of their first actions follow (the second player's after a check). A table for each player
    shows equity, EV and frequencies of each class of hands (AKs).
    """
    unit = answer["big_blind_chips"] or 1.0
    pot, name = answer["pot_chips"], "chips" if unit == 1 else "big blinds"
    lines = [
        f"{answer['board']}, {pot / unit:g} {name} in the pot; exploitability {answer['exploitability_pot']:.3%} "
        f"of the pot after {answer['iterations']:,} iterations",
        *([] if answer["unlocked_gain_chips"] is None else [_unlocked(answer)]),
        "",
        f"{'EV in ' + name:18}{'equity':>9}{'EV':>10}{'of pot':>9}{'EQR':>8}{'gain of a best response':>25}",
    ]
    for place, position in enumerate(_NAMES):
        equity, ev, eqr, gain = (answer[key][place] for key in ("equity", "ev_chips", "eqr", "gain_chips"))
        cells = (equity, "9.3%"), (_share(ev, unit), "10.2f"), (_share(ev, pot), "9.1%"), (eqr, "8.3f")
        texts = "".join(_number(*cell) for cell in cells)
        lines.append(f"{position:18}{texts}{_number(_share(gain, pot), '16.3%')} of pot".rstrip())
    for key, title in (
        ("actions", "out of position, first action (EV of the hands that take it)"),
        ("ip_actions", "in position, after a check (EV of the hands that take it)"),
    ):
        if answer[key]:
            lines += ["", f"{title}: " + ", ".join(_action(one, unit) for one in answer[key])]
    for key, position, actions in zip(("oop", "ip"), _NAMES, (answer["actions"], answer["ip_actions"]), strict=True):
        lines += ["", *_table(position, answer["classes"][key], [_name(one, unit) for one in actions], unit)]
    return "\n".join([*lines, "", f"more: mccfr view {answer['run']}"])


def _advice(seconds: float | None) -> str:
    """Return advice on how to reach the exploitability of --to; `seconds` is the limit of --time."""
    if seconds is not None:
        return "repeat the command with a longer --time: the run continues"
    return "allow more iterations with --set run.iterations=20000, or 64-bit tables with --set solver.dtype=float64"


def _unlocked(answer: Mapping[str, Any]) -> str:
    gains, pot = answer["unlocked_gain_chips"], answer["pot_chips"]
    told = ", ".join(f"{name} {gain / pot:.3%}" for name, gain in zip(_NAMES, gains, strict=True))
    return f"gain of a best response that may also change locked hands, of the pot: {told}"


def _table(name: str, classes: Sequence[Mapping[str, Any]], actions: Sequence[str], unit: float) -> list[str]:
    heads = "".join(f"{action:>10}" for action in actions)
    lines = [f"{name:18}{'of range':>9}{'equity':>9}{'EV':>10}{'EQR':>8}{heads}"]
    for one in classes:
        told = "".join(_number(share, "10.1%") for share in one["frequencies"])
        worth = f"{one['equity']:9.1%}{one['ev_chips'] / unit:10.2f}{_number(one['eqr'], '8.3f')}"
        lines.append(f"{one['class']:18}{one['share']:9.1%}{worth}{told}")
    return lines


def _number(value: float | None, form: str) -> str:
    """Return a number in the format `form`, such as "9.1%"; a dash of that width if it is None."""
    return f"{'-':>{form.split('.', maxsplit=1)[0]}}" if value is None else format(value, form)


def _share(chips: float | None, of: float) -> float | None:
    return None if chips is None else chips / of


def _name(action: Mapping[str, Any], unit: float) -> str:
    return "check" if action["bet_chips"] is None else f"bet {action['bet_chips'] / unit:g}"


def _action(action: Mapping[str, Any], unit: float) -> str:
    ev = "" if action["ev_chips"] is None else f" (EV {action['ev_chips'] / unit:.2f})"
    return f"{_name(action, unit)} {_number(action['frequency'], '.1%').strip()}{ev}"


@click.command("upi")
def upi() -> None:
    """Speak PioSOLVER's text protocol (UPI) on stdin and stdout.

    Programs that speak it can set ranges, board and bet sizes, solve this game, and read strategies along its tree.

    Example: printf 'set_range OOP AA' | mccfr upi
    """
    from mccfr.upi import serve

    serve(sys.stdin, sys.stdout)
