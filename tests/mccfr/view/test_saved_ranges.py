"""Ranges that are saved in the page, and ranges of a blueprint's preflop actions.

Shows:

* Ranges are saved by name, and a blueprint's are offered
  (test_ranges_are_saved_replaced_and_deleted, test_presets_are_the_ranges_that_take_preflop_actions)
"""

import numpy as np
import pytest
from random_policy import policy
from refusals import refused

from abstraction.range_notation import parse_range
from mccfr.view import Spots
from mccfr.view.saved_ranges import FILE, MOST_SAVED, delete_range, preset_ranges, save_range, saved_ranges


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_ranges_are_saved_replaced_and_deleted():
    assert saved_ranges() == {} and not FILE.exists()
    assert save_range("  my   open ", "AA,KK:0.5") == {"saved": {"my open": "AA,KK:0.5"}}
    save_range("Überruf", "77+")
    assert save_range("my open", "AA") == {"saved": {"my open": "AA", "Überruf": "77+"}}
    assert saved_ranges() == {"my open": "AA", "Überruf": "77+"}
    assert delete_range("my open") == {"saved": {"Überruf": "77+"}} and saved_ranges() == {"Überruf": "77+"}
    refused("no range is saved as 'my open'", delete_range, "my open")
    refused("write 1 to 60 characters", save_range, "  ", "AA")
    refused("write 1 to 60 characters", save_range, "x" * 61, "AA")


def test_a_file_without_valid_ranges_is_refused_and_not_changed():
    FILE.parent.mkdir()
    for text, sentence in (("[]", "runs/ranges.json"), ('{"a": 1}', "runs/ranges.json"), ("{", "is not JSON")):
        FILE.write_text(text)
        refused(sentence, save_range, "a", "AA")
        assert FILE.read_text() == text
    FILE.write_text("{" + ",".join(f'"{number}": "AA"' for number in range(MOST_SAVED)) + "}")
    refused("500 ranges are saved", save_range, "one more", "AA")


def test_presets_are_the_ranges_that_take_preflop_actions():
    """The weight of each hand is that of the range times the probability of the action."""
    spots = Spots(policy(), "random")
    found = {one["name"]: one["text"] for one in preset_ranges(spots)}
    assert len(found) == len(preset_ranges(spots)) and not any(name.endswith(": Fold") for name in found)
    for line, name in (
        ("", "Button, first in: Raise to 2 BB"),
        ("b200", "Big blind, facing a raise: b200: Call 1 BB"),
        ("b200", "Big blind, facing a raise: b200: Raise to 6 BB"),
    ):
        there = spots.spot(line)
        action = [one["name"] for one in there["actions"]].index(name.split(": ")[-1])
        reach = np.array(there["hands"]["reach"][there["player"]])
        wanted = reach * np.array(there["hands"]["probabilities"])[:, action]
        np.testing.assert_allclose(parse_range(found[name]), wanted, atol=2e-3)
