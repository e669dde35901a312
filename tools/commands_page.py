"""Writes the lower part of docs/commands.md from the help texts of all commands.

    python tools/commands_page.py

`tests/test_docs.py` checks that the page is up to date.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import rich_click as click

from mccfr.cli.group import cli

PAGE = Path(__file__).resolve().parent.parent / "docs" / "commands.md"
COMMON = 2
"""The page describes an option once if this many commands have it with the same help."""
VALUES = {"INTEGER RANGE": "N", "NUMBER": "N", "FLOAT RANGE": "X"}
"""Names of values on the page, by click's names."""
GENERATED = "## Options of several commands\n"
"""First line of the generated part; the part above is written by hand."""


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    """Yield every command that is not a group, with its context."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, click.Context(below, context, info_name=name))
    else:
        yield command, context


def spelled(option: click.Option, context: click.Context) -> str:
    """Return an option as a user types it."""
    if option.is_flag:
        return f"`{option.opts[0]}`"
    value = option.make_metavar(context)
    return f"`{option.opts[0]} {VALUES.get(value, value)}`"


def options(command: click.Command) -> list[click.Option]:
    """Return the options of a command that the page describes."""
    return [each for each in command.params if isinstance(each, click.Option) and each.help and not each.hidden]


def described(command: click.Command, context: click.Context, common: set[tuple[str, str]]) -> Iterator[str]:
    """Yield the lines of the page on one command."""
    pieces = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    yield f"### {' '.join([context.command_path, *pieces])}"
    yield ""
    first, *_ = (command.help or "").partition("\n\n")
    yield " ".join(first.split())
    yield ""
    own, shared = [], []
    for option in options(command):
        if (option.opts[0], option.help or "") in common:
            shared.append(f"`{option.opts[0]}`")
        else:
            own.append(f"* {spelled(option, context)}: {option.help}")
    yield from [*own, *([f"* and {', '.join(shared)}"] if shared else [])]
    if own or shared:
        yield ""


def page() -> str:
    """Return the whole page."""
    head, _, _ = PAGE.read_text(encoding="utf-8").partition(GENERATED)
    root = click.Context(cli, info_name="mccfr")
    every = list(commands(cli, root))
    count = Counter((option.opts[0], option.help or "") for command, _ in every for option in options(command))
    common = {key for key, times in count.items() if times >= COMMON}
    lines = [GENERATED, "Lists below end with the names of these:", ""]
    for command, context in every:
        for option in options(command):
            key = option.opts[0], option.help or ""
            line = f"* {spelled(option, context)}: {option.help}"
            if key in common and line not in lines:
                lines.append(line)
    by_name = {context.command_path.split()[1]: [] for _, context in every}
    for command, context in every:
        by_name[context.command_path.split()[1]] += described(command, context, common)
    for group in click.rich_click.COMMAND_GROUPS["mccfr"]:
        lines += ["", f"## {group['name']}", ""]
        for name in group["commands"]:
            lines += by_name.pop(name)
        del lines[-1]
    assert not by_name, f"not in a group of the help: {', '.join(by_name)}"
    return head + "\n".join(lines) + "\n"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
