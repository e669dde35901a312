"""Documentation: named tests, files, headings and keys exist; generated pages are up to date."""

import re
import sys
from pathlib import Path

import msgspec
import pytest
from places import ROOT

from abstraction import recipe
from mccfr.cli.group import cli, click
from mccfr.config import game_tables, run_tables, solver_tables

sys.path.append(str(ROOT / "tools"))
import commands_page
import evidence_page

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOW = [page for page in PAGES if page.name != "CHANGELOG.md" and page.parent.name != "measured"]


def anchors(page: Path) -> set[str]:
    """Return the link anchors of a page's headings."""
    found = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def named_tests() -> list[tuple[str, str]]:
    """Return (file, test) of every claim on the pages; the test is empty if the whole file is meant."""
    text = "".join((ROOT / "docs" / page).read_text() for page in ("evidence.md", "durability.md"))
    return re.findall(r"`((?:(?:mccfr|abstraction|storage)/[\w/]*)?test_\w+\.py)(?:::(\w+))?`", text)


def test_tests_named_on_pages_exist():
    found = named_tests()
    assert len(found) > 40
    for file, name in found:
        path = ROOT / "tests" / file
        assert path.is_file(), file
        assert not name or f"\ndef {name}(" in path.read_text(), (file, name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_existing_targets(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        if re.match(r"https?:", target):
            continue
        linked = (page.parent / name) if name else page
        assert linked.exists(), (page.name, target)
        assert not anchor or anchor in anchors(linked), (page.name, target)


@pytest.mark.parametrize("page", NOW, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_named_on_pages_exist(page):
    for name in re.findall(r"`((?:mccfr|abstraction|storage|tests|tools|runs)/[\w/.\-]+)`", page.read_text()):
        made_up = re.search(r"[A-Z]{2}", name)  # NAME stands for any
        assert made_up or (ROOT / name).exists() or (ROOT / "tests" / name).exists(), (page.name, name)


# --- generated pages ---


@pytest.mark.parametrize("generator", [commands_page, evidence_page])
def test_generated_pages_are_up_to_date(generator):
    """If not, run `python tools/commands_page.py` or `python tools/evidence_page.py`."""
    assert generator.PAGE.read_text(encoding="utf-8") == generator.page()


def test_every_command_and_option_is_on_the_commands_page():
    text = commands_page.PAGE.read_text(encoding="utf-8")
    every = list(commands_page.commands(cli, click.Context(cli, info_name="mccfr")))
    assert len(every) > 25
    for command, context in every:
        assert f"### {context.command_path}" in text
        told = text.partition(f"### {context.command_path}")[2].partition("\n###")[0]
        for option in command.params:
            if isinstance(option, click.Option):
                assert f"`{option.opts[0]}" in told, (context.command_path, option.opts)


def test_tests_named_in_docstrings_exist():
    names = {path.stem for path in evidence_page.TESTS.rglob("test_*.py")}
    for path in evidence_page.TESTS.rglob("test_*.py"):
        names |= set(re.findall(r"^(?:def )?(test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    found = [(file, claim) for file, claims in evidence_page.every().items() for claim in claims]
    assert len(found) > 130
    assert [(file, claim.says) for file, claim in found if not claim.tests or set(claim.tests) - names] == []
    assert sum(claim.planted for _, claim in found) > 20


# --- the page of keys ---


TEXT = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
NOT_WRITTEN = {"named"}
"""Fields of user-defined objects that are no keys of a configuration file."""


def keys() -> set[str]:
    """Return every key of every table."""
    found = set()
    for module in (game_tables, solver_tables, run_tables, recipe):
        for struct in vars(module).values():
            if isinstance(struct, type) and issubclass(struct, msgspec.Struct):
                found |= {field.encode_name for field in msgspec.structs.fields(struct)}
    return found - NOT_WRITTEN


def test_every_key_is_on_the_configuration_page():
    shown = set(re.findall(r"`\[*[\w.]*?\.?(\w+)[`\]]", TEXT))
    assert len(keys()) > 100
    assert sorted(keys() - shown) == []


def test_every_key_on_the_configuration_page_exists():
    first_cells = re.findall(r"^\| (`.*?) \|", TEXT, re.MULTILINE)
    shown = {key for cell in first_cells for key in re.findall(r"`(\w+)`", cell)}
    sizes = {"300chips", "allin"}  # of a menu's table of sizes
    assert len(shown) > 100
    assert sorted(shown - keys() - sizes - {"algorithm", "name", "3x", "3e", "e"}) == []
