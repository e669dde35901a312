"""Features from EVs at decisions: definition with full matrices, buckets, planted errors.

Shows:

* EVs of hands at each decision equal their definition (test_it_equals_the_definition; planted:
  test_planted_errors_show)
* Sampled boards represent all following boards closely (correlation above 0.95)
  (test_boards_that_are_drawn_stand_for_all)
* Buckets by EV are the same for any number of workers, and are built again for another policy (test_buckets_by_values)
"""

from dataclasses import replace
from math import comb

import numpy as np
import pytest
from policies import write_random
from random_policy import Deck
from refusals import refused
from strategies import random_strategy

from abstraction import values as by_value
from abstraction.buckets import Abstraction, unused
from abstraction.build import Builder
from abstraction.cards import parse_cards
from abstraction.keeper import FileKeeper
from abstraction.recipe import load_recipe
from mccfr.config.games import Menu, PokerGame
from mccfr.evaluation import value_features
from mccfr.evaluation.value_features import EXPLORED, builder, policy_values, street_features
from mccfr.games.betting import build_tree
from mccfr.games.catalogue import build_game
from mccfr.games.game import Game
from mccfr.games.holdem_betting import holdem_rules
from mccfr.policy.profile import Profile
from mccfr.tables.strategy import Strategy
from mccfr.trees.compiled import DECISION

PAIRS = PokerGame(ranks=3, suits=2, hole_cards=2, board_cards=[0, 1, 1], antes=[1, 1], stack=3)
MERGED = PokerGame(ranks=4, suits=2, board_cards=[0, 1, 1], antes=[1, 1], stack=3, merge_suits=True)
RECIPE = """
values = ["policy"]
deck = { ranks = 4, suits = 2, board_cards = [0, 1, 1] }
flop = { features = "values", buckets = 6, sample = 0 }
turn = { features = "values", buckets = 9, sample = 0 }
"""


def whole_deck():
    deck = Deck((0, 3, 1, 1), np.full((4, 2), 5), lambda: [])
    return Game("holdem", build_tree(holdem_rules(1000.0, (50.0, 100.0), 0, Menu(first=("1p",), later=()))), deck)


def defined(game, strategy, street, board):
    """[H, D] as `street_features`, of one board, from matrices over pairs of hands."""
    cards, arrays, slots = game.cards, game.tree.arrays, game.tree.row_slots
    path, masks, last = cards.path(street, board), cards.hand_masks(), cards.streets - 1
    disjoint, held = (masks[:, None] & masks) == 0, int((cards.hand_cards[0] >= 0).sum())
    found = np.zeros((len(masks), int(slots[2 * street] + slots[2 * street + 1])))

    def met(reach):
        return [disjoint @ reach[1 - player] for player in range(2)]

    def value(node, at, lying, reach):
        block, ends = int(arrays.block[node]), arrays.kind[node] != DECISION
        if at < last and ((ends and arrays.showdown[node] != 0) or (not ends and block // 2 > at)):
            known, dealt = cards.cards_on(at), cards.cards_on(at + 1) - cards.cards_on(at)
            after = [path[at + 1]] if at < street else cards.boards_after(at, lying)
            total = [np.zeros(len(masks)) for _ in range(2)]
            for new in after:
                live = cards.live(at + 1, new)
                for player, won in enumerate(value(node, at + 1, new, [live * part for part in reach])):
                    total[player] += live * won
            return [part / comb(cards.deck_size - known - 2 * held, dealt) for part in total]
        if ends and arrays.showdown[node] == 0:
            return [sign * arrays.fixed[node] * part for sign, part in zip((1, -1), met(reach), strict=True)]
        if ends:
            strength = np.asarray(cards.strengths(lying)).astype(np.int64)
            beats = disjoint * np.sign(strength[:, None] - strength) * arrays.showdown[node]
            return [beats @ reach[1], beats @ reach[0]]
        player, first, count = block % 2, int(arrays.slot[node]), int(arrays.count[node])
        rows = strategy.probability[block][np.maximum(cards.bucket_row(at, player, lying), 0), first : first + count]
        rows = (1 - EXPLORED) * rows + EXPLORED / count
        below = []
        for action, child in enumerate(game.tree.children(node)):
            below.append(
                value(child, at, lying, [p * rows[:, action] if w == player else p for w, p in enumerate(reach)])
            )
        if at == street:
            column = first + (int(slots[2 * street]) if player else 0)
            weight = met(reach)[player]
            for action, won in enumerate(below):
                found[:, column + action] = np.where(weight > 0, won[player] / np.maximum(weight, 1e-300), 0)
        own = sum(rows[:, action] * won[player] for action, won in enumerate(below))
        other = sum(won[1 - player] for won in below)
        return [own, other] if player == 0 else [other, own]

    start = cards.path(0, path[0])[0]
    value(0, 0, start, [np.asarray(part, float) for part in cards.reach])
    return np.where(cards.live(street, board)[:, None], found, 0)


@pytest.fixture(scope="module")
def deck():
    game = whole_deck()
    return Profile(game, random_strategy(game, 3))


def test_it_equals_the_definition(deck):
    for config in (PAIRS, MERGED):
        game = build_game(config, None)
        side = Profile(game, random_strategy(game, 1))
        for street in (1, 2):
            boards = [0, 3]
            found = street_features(side, street, boards)
            for board, rows in zip(boards, found, strict=True):
                assert rows == pytest.approx(defined(game, side.strategy, street, board), abs=1e-5)
    board = tuple(parse_cards("Qs7h2d2cKs"))
    found = street_features(deck, 3, [board, board])
    assert found[0] == pytest.approx(defined(deck.game, deck.strategy, 3, board), abs=0.05)
    assert found[0] == pytest.approx(found[1], abs=1e-3) and abs(found).max() > 100


def test_boards_that_are_drawn_stand_for_all(deck, monkeypatch):
    board = tuple(parse_cards("Qs7h2d2c"))
    some = street_features(deck, 2, [board])[0]
    monkeypatch.setattr(value_features, "FOLLOWING", (48, 48))
    every = street_features(deck, 2, [board])[0]
    assert np.corrcoef(some.ravel(), every.ravel())[0, 1] > 0.95
    assert abs((some - every).mean()) < 0.1 * every.std()


def test_planted_errors_show(deck, monkeypatch):
    board = tuple(parse_cards("Qs7h2d2cKs"))
    expected = defined(deck.game, deck.strategy, 3, board)
    forgot = replace(deck, strategy=random_strategy(deck.game, 4))  # as if what was played before did not count
    blocks = [*forgot.strategy.probability[:6], *deck.strategy.probability[6:]]
    before = Profile(deck.game, Strategy(blocks, deck.strategy.weight))
    assert abs(street_features(before, 3, [board])[0] - expected).max() > 10
    monkeypatch.setattr(value_features, "_arrivals", lambda public, _street, _player: public)  # not divided
    assert abs(street_features(deck, 3, [board])[0] - expected).max() > 10


def part_by_part(file, out, monkeypatch):
    """Builds as where boards are many, killed between two parts and begun again."""
    monkeypatch.setattr(by_value, "WHOLE", 0)
    monkeypatch.setattr(by_value, "_TOGETHER", 4)
    assigned, nearest = [], by_value.nearest_centres

    def assign(*given):
        assigned.append(0)
        if len(assigned) == 4:
            raise KeyboardInterrupt
        return nearest(*given)

    monkeypatch.setattr(by_value, "nearest_centres", assign)
    recipe = load_recipe(file)
    with pytest.raises(KeyboardInterrupt):
        Builder(recipe, out, 2, keep_seconds=0, values=policy_values(recipe, file.parent)).build()
    monkeypatch.setattr(by_value, "nearest_centres", nearest)
    resumed, resume = [], FileKeeper.resume

    def noted(self, phase):
        if (found := resume(self, phase)) is not None:
            resumed.append(phase)
        return found

    monkeypatch.setattr(FileKeeper, "resume", noted)
    Builder(recipe, out, 2, keep_seconds=0, values=policy_values(recipe, file.parent)).build()
    assert resumed == ["assignment"]
    monkeypatch.setattr(by_value, "WHOLE", 1 << 22)


def test_buckets_by_values(tmp_path, monkeypatch):
    file = tmp_path / "values.toml"
    file.write_text(RECIPE)
    refused("is not a policy: it has no meta.json", builder, file, tmp_path / "none", error=FileNotFoundError)
    write_random(tmp_path / "policy", MERGED)
    tables = []
    for workers in (1, 2):
        out = tmp_path / f"by-{workers}"
        assert builder(file, out, workers).build() == ["preflop", "flop", "turn"]
        assert builder(file, out, workers).build() == []
        tables.append([Abstraction(out).table(street) for street in ("flop", "turn")])
    assert all(np.array_equal(one, other) for one, other in zip(*tables, strict=True))
    listing = load_recipe(file).deck.listing()
    for street, table in enumerate(tables[0], 1):
        numbers = listing.numbers(street, merge_suits=True)
        assert np.array_equal(table == unused(table.dtype), numbers < 0)
        assert all(len(np.unique(table[numbers == number])) == 1 for number in range(numbers.max() + 1))
        assert len(np.unique(table[numbers >= 0])) == (6, 9)[street - 1]
    part_by_part(file, tmp_path / "parts", monkeypatch)
    assert all(np.array_equal(Abstraction(tmp_path / "parts").table("turn"), of[1]) for of in tables)
    write_random(tmp_path / "policy", MERGED, seed=1)
    assert builder(file, tmp_path / "by-1").build(replace=True) == ["flop", "turn"]
    write_random(tmp_path / "policy", PAIRS)
    refused(
        "is a policy of other cards than the recipe's", lambda: builder(file, tmp_path / "by-1").build(replace=True)
    )
