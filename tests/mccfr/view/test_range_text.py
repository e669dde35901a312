"""Range texts in the notations of other programs.

Shows:

* Ranges are copied in other programs' notations, and read as the same weights
  (test_a_written_range_is_read_back_unchanged)
"""

import numpy as np
import pytest
from refusals import refused

from abstraction.cards import COMBO_COUNT, combo_table, combo_text
from abstraction.range_notation import parse_range
from mccfr.cards.grid import make_grid
from mccfr.cli.group import cli
from mccfr.view.range_text import NOTATIONS, range_text

NAMES = [combo_text(hand) for hand in range(COMBO_COUNT)]
GRID = make_grid(combo_table(), NAMES)
LIVE = np.ones(COMBO_COUNT, bool)
RANGE = "TT+,AKs:0.5,A5s-A2s,KQo:0.5,AhQh:0.25,72o:0.125"


def in_notation(text, notation):
    return range_text(GRID, NAMES, parse_range(text), LIVE, 1.0, notation)


@pytest.mark.parametrize("notation", [name for name in NOTATIONS if name != "equilab"])
def test_a_written_range_is_read_back_unchanged(notation):
    np.testing.assert_array_equal(parse_range(in_notation(RANGE, notation)), parse_range(RANGE))


def test_the_syntax_of_each_notation():
    text = "QQ+,AKs:0.5,A3s-A2s"
    assert in_notation(text, "mccfr") == "QQ+,AKs:0.5,A3s-A2s"
    assert in_notation(text, "pio") == "AA,AKs:0.5,A3s,A2s,KK,QQ"
    assert in_notation(text, "gto+") == "AA-QQ,A3s-A2s,[50.0]AKs[/50.0]"
    assert in_notation("AhAd,2c2d:0.5", "gtowizard") == "AhAd: 1, 2d2c: 0.5"
    assert in_notation("QQ+,ATs+,AhQd", "equilab") == "QQ+,ATs+,AhQd"
    refused("notation has no weights", in_notation, text, "equilab")
    refused("'crev' is no notation of ranges: mccfr, pio", in_notation, text, "crev")


def test_query_knows_the_same_notations():
    option = next(each for each in cli.commands["query"].params if each.name == "notation")
    assert list(option.type.choices) == list(NOTATIONS)
