"""Evaluation over public trees, against OpenSpiel and enumeration of all pairs of hands.

Shows:

* The test detects a best response that sees the opponent's hand
  (test_a_best_response_that_sees_the_opponents_hand_is_caught)
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyspiel
import pytest
from naive_value import naive_value
from openspiel import NO_LIMIT, universal_poker
from places import RUNS
from refusals import refused
from small_games import few_hands, shared_buckets
from strategies import best_response_value, expected_value, random_strategy, some_locks

from mccfr.cards.card_lists import ListedCards
from mccfr.cards.deals import card_masks
from mccfr.cards.no_cards import NO_CARDS
from mccfr.cards.small_deck_cards import small_deck
from mccfr.config.game_tables import ClairvoyanceGame, HoldemSubgame, KuhnGame, LeducGame, Menu, PokerGame
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.betting import BettingRules
from mccfr.games.betting_tree import build_tree
from mccfr.games.game import Game, Rake
from mccfr.games.registry import build_game
from mccfr.solvers.public import best_response
from mccfr.solvers.public.best_response import FOLLOW, hand_values, values
from mccfr.solvers.public.public_chance.public_chance_sampling import (
    PublicChanceOptions,
    PublicChanceSampling,
    new_tables,
    table_specs,
)
from mccfr.solvers.public.public_tree import public_tree
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.strategy import Strategy, pure_strategy, uniform_strategy


def both_ways() -> Iterator[None]:
    """Evaluate small games by arrays, then by kernels."""
    yield
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best_response, "is_small", lambda game: False)
        yield


# --- the naive twin: each hand of the responder against a vector of the opponent's hands, on every board ---


def assert_equals_twin(game: Game, strategy: Strategy, tolerance: float = 1e-10) -> list[float]:
    """Compare all values with the naive twin; return the gain of a best response for each player."""
    public = public_tree(game)
    following, best = ([naive_value(game, strategy, player, how) for player in range(2)] for how in (None, 0))
    for _ in both_ways():
        assert expected_value(game, strategy, public) == pytest.approx(following[0], abs=tolerance)
        if game.rake is None:
            assert expected_value(game, strategy) == pytest.approx(-following[1], abs=tolerance)
        for player in range(2):
            found = best_response_value(game, strategy, player, public)
            assert found == pytest.approx(best[player], abs=tolerance)
            followed = values(game, strategy, (player,), public)[0, FOLLOW]
            assert followed == pytest.approx(following[player], abs=tolerance)
    return [one - other for one, other in zip(best, following, strict=True)]


def all_in_game(cards: ListedCards, stack: float = 5) -> Game:
    """Return a game with bets of two chips or all-in on every street."""

    def targets(state):
        return sorted({min(state.to_call + 2, stack), stack}) if state.bets < 2 else []

    sizes = [boards.shape[1] for boards in cards.board_cards]
    rules = BettingRules(
        (1, 1), (0,) * len(sizes), targets, stack=stack, minimum_bet=1, board_cards=np.diff([0, *sizes]).tolist()
    )
    return Game("all-in", build_tree(rules), cards)


def subgame_cards(cards: ListedCards, seed: int) -> ListedCards:
    """Return the cards with only the first board of street 0, and with random ranges without some hands."""
    generator = np.random.default_rng(seed)
    reach = generator.random((2, len(cards.hand_cards))) ** 3
    reach[generator.random(reach.shape) < 0.2] = 0
    board_cards, parents, bucket = [cards.board_cards[0][:1]], [cards.board_parent[0][:1]], [cards.bucket[0][:, :1]]
    kept = np.array([0])
    for street in range(1, cards.streets):
        kept = np.flatnonzero(np.isin(cards.board_parent[street], kept))
        board_cards.append(cards.board_cards[street][kept])
        parents.append(np.searchsorted(np.unique(cards.board_parent[street][kept]), cards.board_parent[street][kept]))
        bucket.append(cards.bucket[street][:, kept])
    reach[:, (cards.hand_masks() & card_masks(board_cards[0])[0]) != 0] = 0
    return replace(
        cards, reach=reach, board_cards=board_cards, board_parent=parents, bucket=bucket, strength=cards.strength[kept]
    )


SMALL_GAMES = {
    "two cards on a board, then a river": lambda: all_in_game(subgame_cards(small_deck(4, 2, 2, [1, 1]), 1)),
    "two cards, suits merged": lambda: all_in_game(subgame_cards(small_deck(4, 2, 2, [1, 1], merge_suits=True), 2)),
    "two cards, five buckets": lambda: shared_buckets(all_in_game(subgame_cards(small_deck(4, 2, 2, [1, 1]), 3)), 5),
    "two cards, boards dealt from the start": lambda: all_in_game(small_deck(3, 2, 2, [1])),
    "one card, three streets": lambda: all_in_game(small_deck(3, 2, 1, [0, 1, 1]), stack=4),
    "a flop of two cards": lambda: all_in_game(small_deck(3, 2, 1, [0, 2], merge_suits=True)),
    "no cards": lambda: build_game(ClairvoyanceGame(streets=2, probability=0.3), RUNS),
}


@pytest.mark.parametrize("name", SMALL_GAMES)
def test_values_equal_the_twin_over_all_pairs(name):
    game = SMALL_GAMES[name]()
    assert_equals_twin(game, random_strategy(game))


@pytest.mark.parametrize(("name", "by_hand"), [("two cards, suits merged", True), ("two cards, five buckets", False)])
def test_a_best_response_keeps_its_locked_rows(name, by_hand):
    """Compare with the naive twin; a best response with locked rows wins less than one without."""
    game = SMALL_GAMES[name]()
    locked, strategy = some_locks(game, by_hand=by_hand), random_strategy(game)
    assert_equals_twin(locked, strategy)
    for _ in both_ways():
        for player in range(2):
            assert best_response_value(locked, strategy, player) < best_response_value(game, strategy, player) - 1e-3


@pytest.mark.parametrize("name", list(SMALL_GAMES)[:2])
def test_values_with_rake_equal_the_twin_over_all_pairs(name):
    """Compare folds, showdowns, ties and run-outs below and above the cap; both players pay the rake."""
    game = replace(SMALL_GAMES[name](), rake=Rake(0.1, 0.7))
    strategy = random_strategy(game)
    gained = assert_equals_twin(game, strategy)
    for _ in both_ways():
        assert 0.2 < -values(game, strategy)[:, FOLLOW].sum() < 0.7
        assert evaluate_exact(game, strategy).exploitability_chips == pytest.approx(sum(gained) / 2)


def test_a_checked_in_river_equals_the_twin():
    """Use thirty hands of each range and the default menu."""
    game = few_hands(build_game(HoldemSubgame(file="games/river.txt"), RUNS), 30)
    assert_equals_twin(game, random_strategy(game, 5), 1e-9)  # values of thousands of chips


def test_a_turn_equals_the_twin_on_few_hands():
    """Use the checked-in turn with 48 rivers, run-outs of all-ins, and ranges of four hands."""
    menu = Menu(first=("1p", "allin"), later=("allin",))
    game = few_hands(build_game(HoldemSubgame(file="games/turn.txt", menu=menu), RUNS), 4)
    assert_equals_twin(game, random_strategy(game, 6), 1e-9)


# --- OpenSpiel ---


def no_limit(hole: int, board: tuple[int, ...], blind: str, first: str, stack: int) -> pyspiel.Game:
    return universal_poker(3, 2, hole, board, **NO_LIMIT, blind=blind, firstPlayer=first, stack=f"{stack} {stack}")


# Our game, OpenSpiel's game, and the expected numbers of betting nodes and infosets.
OPENSPIEL_GAMES = {
    "kuhn": (KuhnGame(), lambda: pyspiel.load_game("kuhn_poker"), 9, 12),
    "leduc": (LeducGame(), lambda: pyspiel.load_game("leduc_poker"), 85, 936),
    "antes": (PokerGame(antes=(1, 1), stack=5), lambda: no_limit(1, (0, 1), "1 1", "1 1", 5), 377, 3648),
    "blinds": (
        PokerGame(blinds=(2, 1), stack=7, first_player=(2, 1)),
        lambda: no_limit(1, (0, 1), "2 1", "2 1", 7),
        202,
        1920,
    ),
    "larger blind first": (
        PokerGame(board_cards=(0,), blinds=(2, 1), stack=6),
        lambda: no_limit(1, (0,), "2 1", "1", 6),
        34,
        72,
    ),
    "two hole cards": (
        PokerGame(hole_cards=2, board_cards=(0,), blinds=(2, 1), stack=8, first_player=(2,)),
        lambda: no_limit(2, (0,), "2 1", "2", 8),
        82,
        420,
    ),
}


def infoset_keys(game: Game, other: pyspiel.Game) -> dict[str, tuple[int, int, list[int]]]:
    """Return for each OpenSpiel infoset: our node, our bucket, and OpenSpiel's actions in our order."""
    found: dict[str, tuple[int, int, list[int]]] = {}
    cards, arrays = game.cards, game.tree.arrays
    held = int((cards.hand_cards[0] >= 0).sum())
    hands = {tuple(sorted(int(c) for c in hand if c >= 0)): h for h, hand in enumerate(cards.hand_cards)}
    boards = [{tuple(map(int, board)): b for b, board in enumerate(street)} for street in cards.board_cards]

    def visit(state: pyspiel.State, node: int, cards_out: tuple[int, ...]) -> None:
        if state.is_chance_node():
            for card, _ in state.chance_outcomes():
                visit(state.child(card), node, (*cards_out, card))
        elif not state.is_terminal():
            player, actions = state.current_player(), state.legal_actions()
            street = int(arrays.block[node]) // 2
            assert arrays.player[node] == player
            assert len(actions) == arrays.count[node]
            hand = hands[tuple(sorted(cards_out[player * held : (player + 1) * held]))]
            board = boards[street][cards_out[2 * held :]]
            key = (node, int(cards.bucket[street][player, board, hand]), actions)
            assert found.setdefault(state.information_state_string(), key) == key
            for action, child in zip(actions, game.tree.children(node), strict=True):
                visit(state.child(action), child, cards_out)

    visit(other.new_initial_state(), 0, ())
    return found


def openspiel_policy(game: Game, strategy: Strategy, keys: dict[str, tuple[int, int, list[int]]]) -> dict:
    """Return a strategy as OpenSpiel's table of infosets."""
    policy, arrays = {}, game.tree.arrays
    for text, (node, bucket, actions) in keys.items():
        slot = int(arrays.slot[node])
        row = strategy.probability[arrays.block[node]][bucket, slot : slot + len(actions)]
        policy[text] = list(zip(actions, map(float, row), strict=True))
    return policy


@pytest.mark.parametrize("name", OPENSPIEL_GAMES)
def test_values_and_best_responses_equal_openspiel(name):
    config, load, nodes, infosets = OPENSPIEL_GAMES[name]
    game, other = build_game(config, RUNS), load()
    keys, public = infoset_keys(game, other), public_tree(game)
    assert (game.tree.nodes, int(game.infosets.sum()), len(keys)) == (nodes, infosets, infosets)
    for strategy in (pure_strategy(game, "c"), random_strategy(game)):
        policy = openspiel_policy(game, strategy, keys)
        state = other.new_initial_state()
        value = pyspiel.expected_returns(state, pyspiel.TabularPolicy(policy), -1, True)[0]
        best = [pyspiel.TabularBestResponse(other, player, policy).value_from_state(state) for player in range(2)]
        for _ in both_ways():
            assert expected_value(game, strategy, public) == pytest.approx(value, abs=1e-9)
            for player in range(2):
                assert best_response_value(game, strategy, player, public) == pytest.approx(best[player], abs=1e-9)


def test_a_best_response_that_sees_the_opponents_hand_is_caught():
    """The planted error responds to each opponent hand separately; its value differs from OpenSpiel's."""
    config, load, _, _ = OPENSPIEL_GAMES["leduc"]
    game, other = build_game(config, RUNS), load()
    strategy, public = uniform_strategy(game), public_tree(game)
    policy = openspiel_policy(game, strategy, infoset_keys(game, other))
    for player in range(2):
        cheated = 0.0
        for hand in np.eye(public.reach.shape[1]):
            reach = public.reach.copy()
            reach[1 - player] = hand
            cheated += best_response_value(game, strategy, player, public._replace(reach=reach))
        best = pyspiel.TabularBestResponse(other, player, policy).value_from_state(other.new_initial_state())
        assert best_response_value(game, strategy, player, public) == pytest.approx(best, abs=1e-9)
        assert cheated > best + 0.1


# --- rounding and refusals ---


def test_values_are_exactly_0_if_every_opponent_hand_is_blocked():
    """A hand's value is exactly 0 if it shares a card with every opponent hand, in spite of rounding.

    This holds in full width and in public chance sampling.
    """
    cards, mine, noisy = small_deck(6, 2, 2, [0]), 0, 0
    hits = [bool(set(hand) & set(cards.hand_cards[mine])) for hand in cards.hand_cards.tolist()]
    other = hits.index(False)  # some opponent hands share no card with it
    for seed in range(6):
        reach = np.zeros((2, len(hits)))
        reach[0, [mine, other]] = 1
        reach[1, hits] = np.random.default_rng(seed).random(sum(hits))
        game = all_in_game(replace(cards, reach=reach))
        a, b = (reach[1][(cards.hand_cards == card).any(axis=1)].sum() for card in cards.hand_cards[mine])
        noisy += bool(reach[1].sum() - a - b + reach[1, mine])
        for _ in both_ways():
            values, _, _ = hand_values(game, random_strategy(game, seed))
            assert values[0, mine] == 0 != values[0, other]
        run = PublicChanceSampling(game, PublicChanceOptions(Schedule(), plus=False), new_tables(table_specs(game)))
        run.run(4)
        regrets = run.tables["regret/street0/player0"][:, game.cards.bucket[0][0, 0, [mine, other]]]
        assert not regrets[:, 0].any() and regrets[:, 1].any()
    assert noisy > 0


def test_unfit_games_are_refused():
    game = all_in_game(small_deck(3, 2, 1, [0, 1]))
    cards = game.cards

    def changed(game, **changes):
        public_tree(replace(game, cards=replace(game.cards, **changes)))

    refused("has chance nodes in its tree", public_tree, replace(game, cards=NO_CARDS))
    fewer = {
        "board_cards": [cards.board_cards[0], cards.board_cards[1][:-1]],
        "board_parent": [cards.board_parent[0], cards.board_parent[1][:-1]],
        "bucket": [cards.bucket[0], cards.bucket[1][:, :-1]],
        "strength": cards.strength[:-1],
    }
    refused("all 6 ways to deal 1 of 6 cards", changed, game, **fewer)
    refused("no bucket", changed, game, bucket=[np.full_like(cards.bucket[0], -1), cards.bucket[1]])
    uneven = small_deck(3, 2, 2, [0])
    for words, hand in (("equally many", [uneven.hand_cards[0][0], -1]), ("same two cards", uneven.hand_cards[1])):
        hand_cards = uneven.hand_cards.copy()
        hand_cards[0] = hand
        refused(words, changed, all_in_game(uneven), hand_cards=hand_cards)
