"""Suit merging in spots: strategy, EV and exploitability do not change.

Shows:

* Merging suits that ranges and board treat alike changes no strategy and no EV
  (test_merged_suits_keep_strategies_and_evs; planted: test_planted_error_inverse_permutations_of_hands)
* Suits that a range distinguishes are not merged (test_suits_that_ranges_distinguish_are_not_merged)
"""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import mccfr
from mccfr.cards.endgame_cards import endgame_cards
from mccfr.solvers.public.best_response import hand_values, values
from mccfr.solvers.public.public_tree import public_tree
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.variants import variant

OOP, IP = "AA,KQs,76s:0.3,54s,88", "QQ,AKs:0.7,A5s,22,87s"
SAME = {
    "two-tone turn": ("Kc7d2c5d", OOP, IP, 2),
    "monotone turn": ("Kc7c2c5c", OOP, IP, 6),
    "paired turn": ("KcKd7h2h", OOP, IP, 2),
    "turn of trips": ("KcKdKh7s", OOP, IP, 6),
    "monotone river": ("Kc7c2c5c3c", OOP, IP, 6),
    "rainbow turn": ("Kc7d2h5s", OOP, IP, 1),
}
"""Board, ranges, and the number of permutations of suits that change neither."""


def merged(board, oop=OOP, ip=IP, first=("75%",), later=("allin",)):
    spot = {"board": board, "ranges": {"oop": oop, "ip": ip}, "pot": 60, "effective_stack": 120}
    return mccfr.game("holdem-subgame", **spot, menu={"first": first, "later": later})


def without_merged_suits(game):
    """Return the same spot without merged suits."""
    cards = game.cards
    return replace(game, cards=endgame_cards(cards.board_cards[0][0].tolist(), cards.reach, cards.streets))


def trained(game, iterations=8, public=None):
    cfr = VectorCfr(game, variant("dcfr"), "float64", public=public)
    cfr.iterate(iterations)
    return cfr


def played(game, strategy, street, player):
    """Return probabilities [boards, hands, slots]; 0 for hands outside the range."""
    rows, bucket = strategy.probability[2 * street + player], game.cards.bucket[street][player]
    return np.where((bucket >= 0)[..., None], rows[bucket], 0.0)


@pytest.mark.parametrize("name", SAME)
def test_merged_suits_keep_strategies_and_evs(name):
    board, oop, ip, renamings = SAME[name]
    game = merged(board, oop, ip)
    ours, apart = trained(game), trained(without_merged_suits(game))
    assert len(ours.public.copies.hand) == renamings
    assert (int(game.infosets.sum()) < int(apart.game.infosets.sum())) == (renamings > 1)
    assert ours.in_place
    strategies = [cfr.average_strategy() for cfr in (ours, apart)]
    for street in range(game.tree.streets):
        for player in range(2):
            here, there = (
                played(cfr.game, each, street, player) for cfr, each in zip((ours, apart), strategies, strict=True)
            )
            np.testing.assert_allclose(here, there, rtol=0, atol=1e-9)
    found = values(game, strategies[0])
    np.testing.assert_allclose(found, values(apart.game, strategies[1], public=apart.public), rtol=0, atol=1e-9)
    hands, others = hand_values(game, strategies[0]), hand_values(apart.game, strategies[1])
    for ours_, theirs in zip(hands, others, strict=True):
        np.testing.assert_allclose(ours_, theirs, rtol=1e-9, atol=1e-9)


def test_suits_that_ranges_distinguish_are_not_merged():
    """One weight of one hand is enough to distinguish suits."""
    game = merged("Kc7c2c5c", oop=f"{OOP},AhQh:0.5")
    assert len(public_tree(game).copies.hand) == 2  # spades and diamonds
    assert len(public_tree(merged("Kc7c2c5c", oop=f"{OOP},AhQh:0.5,AdQd:0.25")).copies.hand) == 1


@pytest.mark.parametrize("name", ["monotone turn", "turn of trips"])
def test_planted_error_inverse_permutations_of_hands(name):
    """Plant the inverse of each permutation, which differs if three suits are isomorphic."""
    game = merged(*SAME[name][:3])
    public = public_tree(game)
    copies = public.copies
    wrong = public._replace(copies=copies._replace(hand=np.argsort(copies.hand, axis=1).astype(np.int32)))
    right, other = (trained(game, public=tree).average_strategy().probability for tree in (public, wrong))
    assert max(np.abs(one - two).max() for one, two in zip(right, other, strict=True)) > 1e-2


def test_set_up_takes_little_memory():
    wide = "22+,A2s+,K9s+,QTs+,JTs,AJo+"
    game = merged("Kc7c2c5c", wide, wide, first=("33%", "75%"), later=("60%",))
    tracemalloc.start()
    try:
        cfr = VectorCfr(game, variant("dcfr"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The measured factor is 2.4; weights for each pair of column and hand would take 40.
    assert peak < 4 * sum(table.nbytes for table in cfr.tables.values())
