"""The page of commands is made from what they say of themselves."""

import sys

from places import ROOT

sys.path.append(str(ROOT / "tools"))
from commands_page import PAGE, commands, page

from mccfr.cli import cli, click


def test_the_page_is_what_the_commands_say():
    """If not: `python tools/commands_page.py` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_command_and_every_option_is_on_it():
    text = PAGE.read_text(encoding="utf-8")
    every = list(commands(cli, click.Context(cli, info_name="mccfr")))
    assert len(every) > 25
    for command, context in every:
        assert f"### {context.command_path}" in text
        told = text.partition(f"### {context.command_path}")[2].partition("\n###")[0]
        for option in command.params:
            if isinstance(option, click.Option):
                assert f"`{option.opts[0]}" in told, (context.command_path, option.opts)
