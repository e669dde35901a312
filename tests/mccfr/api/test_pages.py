"""Commands and outputs shown in the documentation.

Shows:

* Commands and Python examples of the documentation print the output shown there (test_pages)
"""

import json
import re
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import command, processes
from guests import guests_from
from pages import blocks, commands, play
from places import ROOT, RUNS

from mccfr.cli.group import cli

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
READING = ("status", "query", "report")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Provide an empty current directory on Python's path; forget modules imported from it."""
    monkeypatch.chdir(tmp_path)
    with guests_from(tmp_path, monkeypatch):
        yield tmp_path


def printed(capsys):
    def read() -> str:
        found = capsys.readouterr()
        return found.out + found.err

    return read


@contextmanager
def most_as_processes(folder):
    """Run commands that read runs and policies as processes; others here, to avoid compiling users' rules."""
    with processes(folder) as run:
        yield lambda name, *rest: (command if name not in READING else run)(name, *rest)


def test_the_tutorial(folder, capsys):
    with most_as_processes(folder) as run:
        assert play(ROOT / "docs/tutorial-python.md", folder, run, printed(capsys)) > 10
    for name in ("my_games.py", "my_variants.py"):
        assert len((folder / name).read_text().splitlines()) <= 30


def test_the_reference_of_the_python_interface(folder, capsys):
    shutil.copytree(RUNS / "games", folder / "games")
    with most_as_processes(folder) as run:
        assert play(ROOT / "docs/api.md", folder, run, printed(capsys)) > 5


def test_programs_that_read_policies(folder, capsys):
    """Run programs that print something; test_holdem.py runs those that read large policies."""
    (folder / "runs/games").mkdir(parents=True)
    for name in ("subgame.toml", "kuhn.toml", "games/river.txt"):
        shutil.copy(RUNS / name, folder / "runs" / name)
    assert command("solve", "runs/subgame.toml", "--run", "river", "--iterations", 2000, "--workers", 0) == 0
    last = json.loads(Path("river/evaluations.jsonl").read_text().splitlines()[-1])
    assert last["exploitability_chips"] < 0.6  # the example's algorithm suits it; sampling would leave hundreds
    assert command("export", "river", "endgame") == 0
    assert command("solve", "runs/kuhn.toml", "--run", "kuhn", "--iterations", 2000, "--workers", 0) == 0
    assert command("export", "kuhn", "kuhn.json", "--format", "openspiel") == 0
    programs = [text for language, text in blocks(ROOT / "docs/policies.md") if language == "python"]
    capsys.readouterr()
    for text in programs:
        if "print(" in text and "def " not in text:
            exec(compile(text, "policies.md", "exec"), {})
            assert capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_the_documentation_can_be_parsed(page):
    """Parse each command without a change; files that the project ships must exist."""
    for _, text in blocks(page):
        for arguments, _ in commands(text):
            with cli.make_context("mccfr", list(arguments)) as context:
                name, command, rest = cli.resolve_command(context, [*context._protected_args, *context.args])
                with command.make_context(name, rest, parent=context):
                    pass
            for argument in arguments:
                if re.fullmatch(r"runs/[\w/-]+\.toml", argument):
                    assert (ROOT / argument).is_file(), (page.name, argument)


def test_every_name_of_the_interface_is_on_its_page():
    import mccfr

    text = (ROOT / "docs/api.md").read_text()
    for name in mccfr.__all__:
        assert name.startswith("__") or f"mccfr.{name}" in text or f"**`{name}" in text, name
    assert Path(mccfr.__file__).with_name("py.typed").is_file()
