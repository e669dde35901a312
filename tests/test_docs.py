"""Documents name only what is there: tests, files and headings."""

import re
from pathlib import Path

import pytest
from places import ROOT

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOW = [page for page in PAGES if page.name != "CHANGELOG.md" and page.parent.name != "measured"]


def anchors(page: Path) -> set[str]:
    """What a page's headings can be linked by."""
    found = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def named_tests() -> list[tuple[str, str]]:
    """(file, test) of every claim; no test where the whole file is meant."""
    text = "".join((ROOT / "docs" / page).read_text() for page in ("evidence.md", "durability.md"))
    return re.findall(r"`((?:(?:mccfr|abstraction|storage)/[\w/]*)?test_\w+\.py)(?:::(\w+))?`", text)


def test_every_claim_has_its_test():
    found = named_tests()
    assert len(found) > 40
    for file, name in found:
        path = ROOT / "tests" / file
        assert path.is_file(), file
        assert not name or f"\ndef {name}(" in path.read_text(), (file, name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        if re.match(r"https?:", target):
            continue
        linked = (page.parent / name) if name else page
        assert linked.exists(), (page.name, target)
        assert not anchor or anchor in anchors(linked), (page.name, target)


@pytest.mark.parametrize("page", NOW, ids=lambda page: str(page.relative_to(ROOT)))
def test_modules_that_are_named_exist(page):
    for name in re.findall(r"`((?:mccfr|abstraction|storage|tests|tools|runs)/[\w/.\-]+)`", page.read_text()):
        made_up = re.search(r"[A-Z]{2}", name)  # NAME stands for any
        assert made_up or (ROOT / name).exists() or (ROOT / "tests" / name).exists(), (page.name, name)
