"""Range notations: items, weights, brackets, best hands, ambiguous texts.

Shows:

* Sixty texts in the notations of poker programs have the meaning of a table
  (test_notations_have_the_meaning_of_the_table)
* A text with two meanings is refused with both (test_texts_with_two_meanings)
"""

import json

import numpy as np
import pytest
from places import DATA
from refusals import refusals

from abstraction.cards import COMBO_COUNT, combo_cards, combo_index, combo_table, parse_cards
from abstraction.range_notation import class_names, class_of, parse_range, read_range
from mccfr.play.preflop_equity import preflop_won


def combo(text):
    return combo_index(*parse_cards(text))


def weights_of(meaning):
    """Return the weights [1326] of hand classes and combinations, in standard spelling between spaces."""
    weights, names = np.zeros(COMBO_COUNT), np.array(class_names())[class_of(combo_table())]
    for item in meaning.split():
        hands, _, weight = item.partition(":")
        chosen = names == hands
        if not chosen.any():
            chosen = np.arange(COMBO_COUNT) == combo(hands)
        weights[chosen] = float(weight or 1)
    return weights


TOP_5 = "AA KK QQ JJ TT 99 88 AKs 77 AQs AJs"
TOP_10_WITHOUT_5 = "AKo ATs AQo AJo KQs 66 A9s ATo KJs"
EVERY = " ".join(class_names())
NOTATIONS = (
    *(pair for pairs in json.loads((DATA / "range_notations.json").read_text("utf-8")).values() for pair in pairs),
    # every hand and the best hands: PokerStove, Equilab
    ("random", EVERY),
    ("Any Two", EVERY),
    ("100%", EVERY),
    ("5%", TOP_5),
    ("5%-10%", TOP_10_WITHOUT_5),
    ("top 10%, 72o", f"{TOP_5} {TOP_10_WITHOUT_5} 72o"),
)


def test_there_are_sixty_notations():
    assert len(NOTATIONS) == 60


@pytest.mark.parametrize(("text", "meaning"), NOTATIONS)
def test_notations_have_the_meaning_of_the_table(text, meaning):
    weights = parse_range(text)
    assert (weights.shape, weights.dtype) == ((1326,), np.float64)
    np.testing.assert_allclose(weights, weights_of(meaning), rtol=1e-12)


@pytest.mark.parametrize("text", ["", "  ", "\ufeff\n"])
def test_an_empty_text_is_the_empty_range(text):
    assert not parse_range(text).any()


def test_the_best_hands_are_ordered_by_their_equity_against_a_random_hand():
    equity = np.bincount(class_of(combo_table()), preflop_won(np.ones(COMBO_COUNT))) / np.bincount(
        class_of(combo_table())
    )
    order, taken = np.argsort(-equity, kind="stable"), np.zeros(COMBO_COUNT, bool)
    for cell in order:
        taken |= class_of(combo_table()) == cell
        np.testing.assert_array_equal(
            parse_range(f"{min(100, 100 * (taken.sum() + 0.5) / COMBO_COUNT):.6f}%") > 0, taken
        )


test_texts_with_two_meanings = refusals(
    (r"'76s\+'.* 76s, if only the lower card moves, or 76s-AKs, if both move", parse_range, "76s+"),
    (r"'QJ\+'.* QJ, if only the lower card moves, or QJ-AK, if both move", parse_range, "QJ+"),
    ("'T9o-'.* T9o-T2o, if only the lower card moves, or T9o-32o, if both move", parse_range, "T9o-"),
    ("'AKs 50%'.* weight, as in AKs:50%, or the best hands, as in AKs,50%", parse_range, "AKs 50%"),
    ("'20% AKs'.* weight.* or the best hands", parse_range, "20% AKs"),
    ("'0.5': it can mean the weight of the item before it.* or the best 0.5% of hands", parse_range, "AKs 0.5"),
    ("'20': it can mean the weight.* or the best 20% of hands", parse_range, "20"),
    ("'25': it can mean two ranks.*52.* or the best 25% of hands", parse_range, "25"),
    ("'As': it can mean half of one combination.* or all hands with this card", parse_range, "As Ks"),
    (r"'Ax': it can mean A2\+ without the pair of aces, or A2\+,AA", parse_range, "Ax"),
    (r"'Kxs': it can mean the hands whose higher card is K \(K2s\+\), or all hands with K", parse_range, "Kxs"),
    ("'TT- 77' can mean the run TT-77, or TT- and 77", parse_range, "TT- 77"),
    (r"\[0.5\] can mean 0.5% or 50%", parse_range, "[0.5]AA[/0.5]"),
    (r"\[1\] can mean 1% or 100%", parse_range, "[1.0]AA[/1.0]"),
    ("'AA@0.5' can mean 0.5% or 50%", parse_range, "AA@0.5"),
    ("'AA@1' can mean 1% or 100%", parse_range, "AA@1"),
)

test_brackets = refusals(
    ("do not match: each .50. needs one", parse_range, "[50]AA"),
    ("do not match", parse_range, "AA[/50]"),
    ("do not match", parse_range, "[50]AA,[50]KK[/50][/50]"),
    ("do not match", parse_range, "[]AA[/]"),
    ("'AA:0.5' has two weights", parse_range, "[50]AA:0.5[/50]"),
    ("150% in brackets is more than 100%", parse_range, "[150]AA[/150]"),
    ("200% in brackets is more than 100%", parse_range, "2(AA)"),
    ("shares of the best hands go from 0% to 100%, the smaller first", parse_range, "20%-5%"),
)


def test_weights_and_single_combinations():
    weights = parse_range("AA,AKs:0.5,QQ+,A5s-A2s:.25,KsQh,QdKc:1e-3,72o:0")
    assert weights[combo("AsAh")] == weights[combo("QcQd")] == weights[combo("KsQh")] == 1
    assert weights[combo("AdKd")] == 0.5
    assert weights[combo("Ah3h")] == 0.25
    assert weights[combo("KcQd")] == 0.001
    assert weights.sum() == pytest.approx(18 + 4 * 0.5 + 16 * 0.25 + 1 + 0.001, rel=1e-12)


def test_numbers_are_separated_by_blanks_commas_semicolons_or_lines():
    numbers = ["0.5", "1", "0"] + ["0.25"] * 166
    expected = read_range([float(number) for number in numbers])
    for separator in (" ", ",", "; ", "\r\n"):
        np.testing.assert_array_equal(read_range("\ufeff" + separator.join(numbers) + "\n"), expected)


def test_runs_hold_each_class_between_their_ends():
    for high in range(2, 13):
        weights = parse_range(f"A{'23456789TJQK'[high - 1]}s-A2s")
        cards = [combo_cards(index) for index in np.flatnonzero(weights)]
        assert len(cards) == 4 * high
        assert all(a % 4 == b % 4 and b // 4 == 12 and a // 4 < high for a, b in cards)
