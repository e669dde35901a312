"""Head-to-head of strategies with different card abstractions.

Shows:

* In head-to-head, each side plays by its own card abstraction (test_head_to_head_buckets)
"""

from dataclasses import replace
from functools import cache

import msgspec
import numpy as np
import pytest
from places import RUNS
from refusals import refused
from small_games import TOY, Labels, deck_game, game_of
from strategies import exact_chips, random_strategy

from mccfr.config.game_tables import HoldemSubgame, LeducGame, Menu
from mccfr.evaluation.head_to_head import head_to_head
from mccfr.games.bucketed import bucketed
from mccfr.games.registry import build_game
from mccfr.policy.strategy_profile import Profile
from mccfr.tables.strategy import Strategy, uniform_strategy

SLOTS = {"tenths": np.arange(1326) * 10 // 1326, "last digit": np.arange(1326) % 10, "thirds": np.arange(1326) % 3}


@cache
def endgame_on(labels):
    """Return the turn endgame with buckets by hand number."""
    return bucketed(game_of("turn"), Labels(SLOTS[labels]))


def renumbered(side, seed=0):
    """Return the same strategy with the buckets of each block in another order."""
    rng, cards, tables = np.random.default_rng(seed), side.game.cards, []
    order = [rng.permutation(int(count)) for count in side.game.buckets]
    for table, new in zip(side.strategy.probability, order, strict=True):
        tables.append(np.empty_like(table))
        tables[-1][new] = table
    bucket = []
    for street, old in enumerate(cards.bucket):
        numbers = [np.where(old[p] >= 0, order[2 * street + p][old[p]], -1) for p in range(2)]
        bucket.append(np.stack(numbers).astype(np.int32))
    return Profile(
        replace(side.game, cards=replace(cards, bucket=bucket)), Strategy(tuple(tables), side.strategy.weight)
    )


def chips(one, other, **options):
    return head_to_head(one, other, **options).mean_chips


@pytest.mark.parametrize("name", ["leduc", "leduc, suits merged", "two hole cards", "turn", "turn on buckets"])
def test_renumbering_the_buckets_of_a_strategy_changes_nothing(name):
    game = endgame_on("tenths") if name == "turn on buckets" else game_of(name)
    a, b = (Profile(game, random_strategy(game, seed)) for seed in (1, 2))
    expected = chips(a, b, boards=10, seed=3)
    scale = abs(game.tree.arrays.showdown).max()
    for one, other in ((a, renumbered(b)), (renumbered(a), b), (renumbered(a, 1), renumbered(b, 2))):
        assert chips(one, other, boards=10, seed=3) == pytest.approx(expected, abs=1e-12 * scale)
        assert chips(other, one, boards=10, seed=3) == pytest.approx(-expected, abs=1e-12 * scale)
    assert chips(a, renumbered(a), boards=10) == pytest.approx(0, abs=1e-12 * scale)
    wrong = Profile(game, renumbered(b).strategy)  # a planted error: the target's bucket map for both
    assert abs(chips(a, wrong, boards=10, seed=3) - expected) > 1e-3


def mixed(first, second):
    """Return the game in which player 0 has the first game's buckets and player 1 the second's."""
    bucket = [np.stack([one[0], other[1]]) for one, other in zip(first.cards.bucket, second.cards.bucket, strict=True)]
    buckets = np.stack([first.cards.buckets[:, 0], second.cards.buckets[:, 1]], axis=1)
    return replace(first, cards=replace(first.cards, bucket=bucket, buckets=buckets))


@pytest.mark.parametrize("pair", ["leduc", "lossless and bucketed", "other features", "other counts"])
def test_all_boards_give_the_exact_value_of_two_abstractions(pair):
    """Compare with exact evaluation of the game whose players have different buckets."""
    one, other = {
        "leduc": lambda: (game_of("leduc"), game_of("leduc, suits merged")),
        "lossless and bucketed": lambda: (game_of("turn"), endgame_on("tenths")),
        "other features": lambda: (endgame_on("tenths"), endgame_on("last digit")),
        "other counts": lambda: (endgame_on("thirds"), endgame_on("last digit")),
    }[pair]()
    a, b = Profile(one, random_strategy(one, 1)), Profile(other, random_strategy(other, 2))
    found = chips(a, b, boards=200)
    assert found == pytest.approx(exact_chips((mixed(one, other), mixed(other, one)), a.strategy, b.strategy), rel=1e-9)
    assert chips(b, a, boards=200) == -found != 0


# --- refused games ---


def with_cards(game, **parts):
    return replace(game, cards=replace(game.cards, **parts))


def with_arrays(game, **parts):
    return replace(game, tree=replace(game.tree, arrays=game.tree.arrays._replace(**parts)))


def nudged(array, place):
    """Return an array with one number changed in its last bit."""
    found = array.copy()
    found[place] = np.nextafter(found[place], np.inf)
    return found


def other_games():
    """Yield a name, two incompatible games, and a part of the expected message."""
    leduc, turn, toy = game_of("leduc"), game_of("turn"), game_of("two hole cards")
    arrays, cards = leduc.tree.arrays, leduc.cards
    fold, show = int(np.argmax(arrays.fixed != 0)), int(np.argmax(arrays.showdown != 0))
    yield "another game", leduc, toy, "the game is 'leduc' for the first and 'poker' for the second"
    yield "big blind", turn, replace(turn, big_blind_chips=50.0), "big blind in chips is 100.0 .* and 50.0"
    yield "offset", leduc, replace(leduc, offset_chips=1.0), "from neither player is 0.0 for the first and 1.0"
    payoffs, deals = "the payoffs or rows after a line", "hands, ranges, boards or strengths are others"
    yield "fold", leduc, with_arrays(leduc, fixed=nudged(arrays.fixed, fold)), payoffs
    yield "showdown", leduc, with_arrays(leduc, showdown=nudged(arrays.showdown, show)), payoffs
    yield "rows", leduc, with_arrays(leduc, slot=arrays.slot[::-1].copy()), payoffs
    antes = build_game(msgspec.structs.replace(TOY, antes=[2, 2]), None)
    yield "antes", toy, antes, "the starting pot in chips is 2.* for the first and 4"
    sizes = [build_game(LeducGame(bets=((bet,), (4.0,))), None) for bet in (2.0, 3.0)]
    yield "bets", *sizes, "node 2 of the betting tree is 'r3' for the first and 'r4'"
    menus = [Menu(first=first, later=("allin",), max_bets=1) for first in (("1p",), ("0.5p",), ("0.5p", "1p"))]
    ends = [build_game(HoldemSubgame(file="games/turn.txt", menu=menu), RUNS) for menu in menus]
    yield "sizes", ends[0], ends[1], "of the betting tree is '.*r2700' for the first and '.*r1800' for the second"
    yield "more sizes", ends[1], ends[2], "of the betting tree is|number of nodes"
    yield "range", leduc, with_cards(leduc, reach=nudged(cards.reach, (1, 2))), deals
    yield "hands", leduc, with_cards(leduc, hand_cards=cards.hand_cards[::-1].copy()), deals
    yield "names", leduc, with_cards(leduc, hand_names=[*cards.hand_names[:-1], "X"]), deals
    boards = [turn.cards.board_cards[0], turn.cards.board_cards[1][::-1].copy()]
    yield "boards", turn, with_cards(turn, board_cards=boards), deals
    fewer = [turn.cards.board_cards[0], turn.cards.board_cards[1][:-1]]
    yield "fewer boards", turn, with_cards(turn, board_cards=fewer), deals
    yield "strengths", leduc, with_cards(leduc, strength=-cards.strength), deals
    yield "deck", deck_game((3, 2)), deck_game((3, 1)), r"board cards by street is \(3, 2\) .* and \(3, 1\)"
    listed = replace(leduc, name="two streets", tree=deck_game().tree, pot_chips=1.0)
    yield "listed", replace(listed, big_blind_chips=None), deck_game(), "a list of boards .* and the whole deck"


@pytest.mark.parametrize(("one", "other", "message"), [pytest.param(*rest, id=name) for name, *rest in other_games()])
def test_incompatible_games_are_refused_in_one_sentence(one, other, message):
    uniform = uniform_strategy(one)  # games are compared first
    sides = [Profile(game, uniform) for game in (one, other)]
    for pair in (sides, sides[::-1]):
        assert len(refused("only card buckets differ: ", head_to_head, *pair, boards=2)) < 300
    refused(message, head_to_head, *sides, boards=2)
