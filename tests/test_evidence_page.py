"""The page of evidence is made from what the tests say that they show, and what they name is there."""

import re
import sys

from places import ROOT

sys.path.append(str(ROOT / "tools"))
from evidence_page import PAGE, TESTS, every, page


def test_the_page_is_what_the_tests_say():
    """If not: `python tools/evidence_page.py` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_claim_has_its_tests():
    names = {path.stem for path in TESTS.rglob("test_*.py")}
    for path in TESTS.rglob("test_*.py"):
        names |= set(re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    found = [(file, claim) for file, claims in every().items() for claim in claims]
    assert len(found) > 130
    assert [(file, claim.says) for file, claim in found if not claim.tests or set(claim.tests) - names] == []
    assert sum(claim.planted for _, claim in found) > 20
