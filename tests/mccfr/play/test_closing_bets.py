"""Small bets that the translation maps to a call that closes the betting.

Shows:

* Minimum bets that map to a closing call win no more than against a player who calls them blindly
  (test_the_smallest_bets_win_no_more_than_from_the_naive_reply)
"""

import numpy as np

from mccfr.common.intervals import ratio95
from mccfr.config.game_tables import Menu, PokerGame
from mccfr.games.line_lookup import NOWHERE
from mccfr.games.registry import build_game
from mccfr.games.translation import real_betting
from mccfr.matches.programs import MinimumRaise
from mccfr.play.policy_seat import Seat
from mccfr.play.showdown_values import showdown_results
from mccfr.play.table import play_hand
from mccfr.policy import Profile
from mccfr.tables.strategy import tabulate

GAME = PokerGame(
    ranks=6, suits=2, board_cards=(0, 1), antes=(1, 1), stack=40, menu=Menu(first=("1p",), later=("1p",), max_bets=2)
)
PAIRS = 300


class Blindly(Seat):
    """The naive reply: what the tree has closed is called."""

    met = 0

    def _chosen(self, state, random):
        if self.reading.closed == NOWHERE:
            return super()._chosen(state, random)
        Blindly.met += 1
        return self.replied(state)

    def replied(self, state):
        self.reading = self.betting.outcomes(self.reading, state, "c")[0]
        return "c"


class Timidly(Blindly):
    """A planted error: it is folded to."""

    def replied(self, state):
        return "f"


class Once(MinimumRaise):
    """The smallest bet or raise on each street, once."""

    most = 1


def standing(game):
    """[street][bucket] how a hand stands, 0 to 1: by rank, then by what it beats on the board."""
    cards, found = game.cards, []
    for street in range(cards.streets):
        by_bucket = {}
        for board, hand in np.ndindex(cards.bucket[street].shape[1:]):
            bucket, strength = int(cards.bucket[street][0, board, hand]), cards.strength[board if street else 0]
            live = strength[strength >= 0]
            share = ((live < strength[hand]).mean() + (live <= strength[hand]).mean()) / 2
            by_bucket[bucket] = float(share) if street else hand / len(cards.hand_names)
        found.append(by_bucket)
    return found


def plain_policy():
    """Bets and raises the best 30 % of hands, folds the worst 30 % to bets, and calls with the others."""
    game = build_game(GAME, None)
    stands, arrays = standing(game), game.tree.arrays

    def choose(node, bucket):
        labels = [game.tree.label[child] for child in game.tree.children(node)]
        share = stands[int(arrays.block[node]) // 2].get(bucket, 0.5)
        wanted = "r" if share > 0.7 else "c" if share > 0.3 or "f" not in labels else "f"
        chosen = next((k for k, label in enumerate(labels) if label[0] == wanted), labels.index("c"))
        return np.eye(len(labels))[chosen]

    return Profile(game, tabulate(game, choose))


def won(policy, kind):
    """[PAIRS] what the smallest bets win a hand from a seat, every deal in both seats."""
    betting, dealing = real_betting(policy.game), policy.game.cards.at_table()
    seat, other, found = kind(policy, seed=1), Once(betting), np.zeros((PAIRS, 2))
    rng = np.random.default_rng(0)
    for pair, position in np.ndindex(found.shape):
        deal = dealing.deal(5, pair)
        players = (other, seat) if position == 0 else (seat, other)
        played = play_hand(players, betting, dealing, deal, 2 * pair + position)
        result = showdown_results(dealing, deal.hands, 1, deal.boards[1], 1, rng)[0] if played.showdown else 0.0
        found[pair, position] = (played.fixed + played.showdown * result) * (1 - 2 * position)
    return found.mean(axis=1)


def test_the_smallest_bets_win_no_more_than_from_the_naive_reply():
    """Win no more with the smallest bets than against blind calls, also paired; against folds, more."""
    policy = plain_policy()
    looked, blind, timid = (won(policy, kind) for kind in (Seat, Blindly, Timidly))
    assert Blindly.met > PAIRS / 10
    assert ratio95(looked, np.ones(PAIRS))[1][0] <= blind.mean()
    assert ratio95(looked - blind, np.ones(PAIRS))[1][0] <= 0 < ratio95(timid - blind, np.ones(PAIRS))[1][0]
