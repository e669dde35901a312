"""Options that several commands share, their value types, and helpers for output."""

import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import rich_click as click

_UNITS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)\s*")


class Duration(click.ParamType[float]):
    """Option type: duration, converted to seconds: 90, 90s, 10m, 5min, 1.5h, 2h30m, 7d."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Convert the option's text to seconds; raise `click.BadParameter`, which lists valid forms."""
        from mccfr.config.value_limits import MOST_NUMBER, shown

        text = str(value).strip().lower()
        if re.fullmatch(r"\d+(?:\.\d+)?", text):
            text += "s"
        parts = _PART.findall(text)
        if not parts or _PART.sub("", text) or not all(unit in _UNITS for _, unit in parts):
            allowed = "write 90, 90s, 5min, 1.5h, 2h30m or 7d"
            raise click.BadParameter(f"{shown(value)} is not a length of time; {allowed}", ctx, param)
        seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
        if seconds > MOST_NUMBER:
            raise click.BadParameter(f"{shown(value)} is too long; at most {MOST_NUMBER:g} s are allowed", ctx, param)
        return seconds


class MethodName(click.ParamType[str]):
    """Option type: name of an evaluation method; the command checks that it exists."""

    name = "method"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return the names of all methods, separated by "|"."""
        from mccfr.config.run_tables import METHODS

        return "|".join(METHODS)


class Count(click.ParamType[int]):
    """Option type: integer within limits, by default 0 to 10^18; it may be written 1e7 or 10_000_000."""

    name = "number"

    def __init__(self, least: int | None = None, most: int | None = None) -> None:
        self._least, self._most = least or 0, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Convert the option's text to an integer; raise `click.BadParameter`, which lists valid forms."""
        from mccfr.config.value_limits import MOST_COUNT, shown

        try:
            number = float(value) if re.search("[eE.]", str(value)) else int(str(value))
        except ValueError:
            number = -1
        if not self._least <= number <= (self._most or MOST_COUNT) or number != int(number):
            most = "10^18" if self._most is None else f"{self._most:,}"
            text = f"{shown(value)} is not a whole number from {self._least:,} to {most}, such as 2000 or 1e6"
            raise click.BadParameter(text, ctx, param)
        return int(number)


class MemorySizes(click.ParamType[tuple[float, ...]]):
    """Option type: one or several memory sizes in bytes, separated by commas: 256GB,128GB."""

    name = "amounts"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        """Convert the option's text to numbers of bytes; raise `click.BadParameter` for another text."""
        from mccfr.config.memory_sizes import bytes_of

        try:
            return value if isinstance(value, tuple) else tuple(map(bytes_of, str(value).split(",")))
        except ValueError as error:
            raise click.BadParameter(f"{str(value)!r}: a memory size must be {error}", ctx, param) from None


class Share(click.ParamType[float]):
    """Option type: share up to 100%, such as 0.3%, converted to a number from 0 to 1."""

    name = "share"

    def __init__(self, *, zero: bool = False) -> None:
        """Create the type; `zero` allows a share of 0%."""
        self._zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Convert the option's text to a share from 0 to 1; raise `click.BadParameter` for another text."""
        from mccfr.config.value_limits import share_of, shown

        try:
            share = share_of(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None
        if share > 1 or not (share or self._zero):
            above = "from 0%" if self._zero else "above 0%"
            raise click.BadParameter(f"{shown(value)} is not a share {above} to 100%, such as 0.3%", ctx, param)
        return share


path_type = click.Path(path_type=Path)
force_option = click.option("--force", is_flag=True, help="Run even if memory or disk are too small.")
replace_option = click.option("--replace", is_flag=True, help="Also replace an export of another run.")
abstraction_option = click.option(
    "--abstraction", metavar="DIR", type=path_type, help="Folder of the card abstraction, if it was moved."
)


def _allow(_context: click.Context, _option: click.Parameter, folders: tuple[Path, ...]) -> None:
    """Allow the import of users' modules from the folders of --code.

    Raises `NotADirectoryError` for a path that is no directory.
    """
    from mccfr.config.plugins import allow

    for folder in folders:
        if not folder.is_dir():
            raise NotADirectoryError(f"--code {folder} is not a directory: give the directory of the modules")
    allow(folders)


code_option = click.option(
    "--code",
    metavar="DIR",
    type=path_type,
    multiple=True,
    expose_value=False,
    callback=_allow,
    help="Folder of modules that the run or networks name as module:object; their code is run.",
)
speed_option = click.option(
    "--speed", type=Count(), metavar="NODES", help="Nodes a second of one worker, instead of measuring them."
)
hands_log_option = click.option(
    "--log",
    type=path_type,
    metavar="FILE.phhs",
    help="Write the hands of no-limit hold'em in PHH; FILE.stars.txt: as PokerStars text.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, and nothing else.")


def manner_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --purify (play the most probable action) and --threshold (never play improbable actions)."""
    return _manner_options(command, "", "")


def other_manner_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --against-purify and --against-threshold: the `manner_options` of all players but the first."""
    return _manner_options(command, "against-", " (the others)")


def _manner_options(command: Callable[..., Any], prefix: str, whose: str) -> Callable[..., Any]:
    for option in (
        click.option(
            f"--{prefix}threshold",
            type=Share(zero=True),
            default="0%",
            help=f"Never play actions below this probability, such as 5%{whose}.",
        ),
        click.option(f"--{prefix}purify", is_flag=True, help=f"Always play the most probable action{whose}."),
    ):
        command = option(command)
    return command


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --nodes, --iterations, --time and --workers, which override the configuration."""
    for option in (
        click.option("--workers", type=click.IntRange(0, 1024), help="Worker processes; 0: train in this process."),
        click.option("--time", "seconds", type=Duration(), help="Train for this long in this session: 90s, 10m, 2h."),
        click.option("--iterations", type=Count(), help="Stop at this total of iterations."),
        click.option("--nodes", type=Count(), help="Stop at this total of nodes touched."),
    ):
        command = option(command)
    return command


def aside_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --set-aside and --from-scratch, which move checkpoints away so that the run ignores them."""
    for option in (
        click.option("--from-scratch", is_flag=True, help="Move all checkpoints to set-aside/ and train anew."),
        click.option(
            "--set-aside",
            "aside",
            type=click.IntRange(0),
            multiple=True,
            metavar="NUMBER",
            help="Move this unreadable checkpoint to set-aside/.",
        ),
    ):
        command = option(command)
    return command


def refuse_options_without_effect(where: str, *names: str) -> None:
    """Raise `ValueError` if the command line gives one of the options `names`, which have no effect.

    where  end of the message: the case in which they have none, such as "with --range"
    names  parameter names of the options
    """
    context = click.get_current_context()
    for option in context.command.get_params(context):
        source = context.get_parameter_source(option.name or "")
        if option.name in names and source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"{option.opts[0]} has no effect {where}: leave it out")


NOT_REACHED = 3
"""Exit status of a command that has finished without reaching the exploitability of --to."""


def end_unreached(to: float, reached: str, advice: str) -> NoReturn:
    """End a command that missed the exploitability of --to, with status `NOT_REACHED` and a message.

    to       exploitability that --to asks for, as a share of the pot
    reached  exploitability that was reached, as text
    advice   how the user can reach it
    """
    click.echo(f"mccfr: --to {to * 100:g}% was not reached: {reached}; {advice}", err=True)
    raise click.exceptions.Exit(NOT_REACHED)


@contextmanager
def file_or_example(argument: Path, folder: str = "") -> Iterator[Path]:
    """Yield the file that an argument names; an example is first copied to runs/.

    A message tells of the copy at the end of the block. If the block raises, the copy is removed. Raises `ValueError`
    if there is no such file.

    folder  kind of example: "" (configurations of runs), "experiments" or "abstractions" (descriptions of buckets)
    """
    from mccfr.config.examples import copy_of_example, find_file

    with copy_of_example(find_file(argument, folder)) as (path, copied):
        yield path
    if copied:
        click.echo(f"mccfr: copied the example to {path}", err=True)


def print_json(value: Mapping[str, Any] | list[Any]) -> None:
    """Print a value, a mapping or a list, as one line of JSON on stdout."""
    click.echo(json.dumps(value, allow_nan=False))


def answer(result: Any, as_json: bool, text: Callable[[Any], str]) -> None:
    """Print a result as JSON if `as_json`, otherwise the text that `text` returns for it."""
    if as_json:
        print_json(result)
    else:
        click.echo(text(result))


def workers_text(workers: int) -> str:
    """Return a number of worker processes as text, such as "4 workers"; 0 is "in its own process".

    With 0 workers the command's own process trains.
    """
    return "in its own process" if workers == 0 else "1 worker" if workers == 1 else f"{workers} workers"


def table_lines(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Return a line of text for each row of a table, with columns aligned.

    rows   texts of the cells, row by row
    right  indices of the columns that are aligned to the right
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    signs = [">" if column in right else "<" for column in range(len(widths))]
    return ["  ".join(f"{t:{s}{w}}" for t, s, w in zip(row, signs, widths, strict=True)).rstrip() for row in rows]


def say(text: str) -> None:
    """Print a message on stderr."""
    print(f"mccfr: {text}", file=sys.stderr, flush=True)
