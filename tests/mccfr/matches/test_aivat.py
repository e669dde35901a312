"""AIVAT by full enumeration: exact mean for any heuristic, no variance with exact values.

Shows:

* AIVAT's mean is exact for any heuristic, also if the players re-solve subgames
  (test_the_mean_is_exact_for_any_heuristic, test_the_mean_is_exact_with_re_solved_subgames)
* AIVAT's variance is zero if the heuristic's values are exact
  (test_variance_is_zero_with_exact_values_and_positive_without_any_term)
* The test detects half a correction and a heuristic fitted on scored hands (planted:
  test_a_correction_without_its_expected_part_is_caught,
  test_a_heuristic_fitted_on_the_scored_hands_is_caught)
"""

from functools import cache
from types import SimpleNamespace
from zlib import crc32

import numpy as np
import pytest
from mutants import mutant
from naive import listed_deals
from places import RUNS
from strategies import combine, random_strategy

from mccfr.config.game_tables import KuhnGame, LeducGame
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.registry import build_game
from mccfr.games.translation import real_betting
from mccfr.matches.aivat import Aivat, HandState, Heuristic, _Hand
from mccfr.matches.equity_heuristic import EquityHeuristic
from mccfr.play.hand_beliefs import AnyHand, ObservedRange
from mccfr.play.policy_seat import Seat
from mccfr.play.resolving import Effort, resolve_street, resolving_seat
from mccfr.play.table import PlayedHand
from mccfr.policy import Profile
from mccfr.tables.strategy import pure_strategy, uniform_strategy

GAMES = {"kuhn": KuhnGame(), "leduc": LeducGame(raises=1)}
KNOWN = {"both": (True, True), "player 0": (True, False), "player 1": (False, True), "neither": (False, False)}


class Table:
    """A game and a strategy for both players: every history with its probability."""

    range_of = ObservedRange

    def __init__(self, name, even=None, strategy=None):
        """`even`: player who plays uniformly, or None; `strategy`: replaces the random one."""
        self.game = build_game(GAMES[name], RUNS)
        self.strategy = strategy or random_strategy(self.game, 3)
        if even is not None:
            pair = [self.strategy, self.strategy]
            pair[even] = uniform_strategy(self.game)
            self.strategy = combine(*pair)
        self.betting, self.dealing = real_betting(self.game), self.game.cards.at_table()
        self.seat = Seat(Profile(self.game, self.strategy))
        self.meet = (self.dealing.hand_masks()[:, None] & self.dealing.hand_masks()[None, :]) == 0
        self.truth = evaluate_exact(self.game, self.strategy).value_chips
        self.histories = list(self.all_histories())
        self.exact, self.terms = cache(self.value), cache(self.all_terms)

    def share(self, state, action, street_board):
        """Return [H] the probability of an action with each hand."""
        arrays, node = self.game.tree.arrays, state.node
        number = self.betting.actions(state).index(action)
        bucket = self.dealing.bucket_row(state.street, state.player, street_board)
        rows = self.strategy.probability[int(arrays.block[node])][
            np.maximum(bucket, 0), int(arrays.slot[node]) + number
        ]
        return np.where(bucket < 0, 0, rows)

    def all_histories(self):
        """Yield (deal, played hand, probability, chips of player 0) of each history."""
        for deal, chance in listed_deals(self.dealing):
            todo = [(self.betting.start()[0], (), (), chance)]
            while todo:
                state, states, actions, p = todo.pop()
                for action in self.betting.actions(state):
                    share = p * self.share(state, action, deal.boards[state.street])[deal.hands[state.player]]
                    after = self.betting.apply(state, action)
                    path = (*states, state), (*actions, action)
                    if not isinstance(after, int):
                        todo.append((after, *path, share))
                        continue
                    fixed, showdown = self.betting.settled(state, action)
                    strength = self.dealing.strengths(deal.boards[-1])[list(deal.hands)].astype(int)
                    chips = fixed + showdown * np.sign(strength[0] - strength[1])
                    yield deal, PlayedHand("", *path, fixed, showdown), share, chips

    def value(self, spot):
        """Return [H, H] player 0's expected chips from a spot, by both players' hands."""
        last = self.dealing.streets - 1
        if spot.settled is not None and (not spot.settled[1] or spot.street == last):
            fixed, showdown = spot.settled
            strength = self.dealing.strengths(spot.board).astype(int) if spot.board is not None else np.zeros(1)
            return fixed + showdown * np.sign(strength[:, None] - strength[None, :])
        if spot.settled is not None or spot.state.street > spot.street:
            total, count = np.zeros(self.meet.shape), np.zeros(self.meet.shape)
            for board in self.dealing.boards_after(spot.street, spot.board):
                live = self.dealing.live(spot.street + 1, board)
                pairs = live[:, None] & live[None, :]
                total += np.where(pairs, self.exact(spot._replace(street=spot.street + 1, board=board)), 0)
                count += pairs
            return total / np.maximum(count, 1)
        total = np.zeros(self.meet.shape)
        for action in self.betting.actions(spot.state):
            after = self.betting.apply(spot.state, action)
            ended = self.betting.settled(spot.state, action) if isinstance(after, int) else None
            value = self.exact(HandState((*spot.actions, action), spot.street, spot.board, after, ended))
            share = self.share(spot.state, action, spot.board)
            total += (share[:, None] if spot.state.player == 0 else share[None, :]) * value
        return total

    def all_terms(self, heuristic, known):
        """Return (probability, terms) of all histories; `heuristic` may be a function of a history.

        The terms depend on the line, its boards and the hands of players whose strategy is unknown.
        Histories with the same values of these are computed once.
        """
        found, every = {}, []
        for deal, played, share, chips in self.histories:
            hands = tuple(-1 if shown else hand for shown, hand in zip(known, deal.hands, strict=True))
            ended = played.states[-1].street + 1 if not played.showdown else self.dealing.streets
            key = played.actions, deal.boards[:ended], hands
            if share == 0:
                continue
            if callable(heuristic) or key not in found:
                values = heuristic(self, deal, played, chips) if callable(heuristic) else heuristic
                ranges = [
                    self.range_of(self.seat, position) if shown is True else shown or None
                    for position, shown in enumerate(known)
                ]
                found[key] = Aivat(self.dealing, self.betting, values).terms(deal, played, ranges)
            every.append((share, found[key]))
        return every

    def scored(self, heuristic, known, dropped=None):
        """Return (mean, variance) of the corrected chips; `dropped`: a term that is left out."""
        every = self.terms(heuristic, known)
        shares = np.array([share for share, _ in every])
        values = np.array([sum(value for term, value in terms.items() if term != dropped) for _, terms in every])
        assert shares.sum() == pytest.approx(1, abs=1e-12)
        mean = float(shares @ values)
        return mean, float(shares @ (values - mean) ** 2)


table = cache(Table)


class Dense(Heuristic):
    """A heuristic with given values for each spot and pair of hands."""

    def __init__(self, at, value):
        self.at, self.value = at, value

    def values(self, spot, hero, other):
        values = self.at.meet * self.value(spot)
        return (values if hero == 0 else values.T) @ other


def random_values(at, seed):
    """Return a heuristic with a random value for each spot and pair of hands."""

    def value(spot):
        key = crc32(repr((spot.actions, spot.street, spot.board)).encode())
        return np.random.default_rng((seed, key)).normal(size=at.meet.shape) * 5

    return Dense(at, cache(value))


def exact_values(at):
    return Dense(at, at.exact)


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
@pytest.mark.parametrize("name", GAMES)
def test_the_mean_is_exact_for_any_heuristic(name, known):
    at = table(name)
    for seed in range(3 if name == "kuhn" else 1):
        mean, variance = at.scored(random_values(at, seed), known)
        assert mean == pytest.approx(at.truth, abs=1e-12) and variance > 1e-3
    equity = EquityHeuristic(Profile(at.game, at.strategy), at.dealing)
    assert at.scored(equity, known)[0] == pytest.approx(at.truth, abs=1e-12)


@pytest.mark.parametrize("name", GAMES)
def test_variance_is_zero_with_exact_values_and_positive_without_any_term(name):
    at = table(name)
    exact = exact_values(at)
    mean, variance = at.scored(exact, KNOWN["both"])
    assert mean == pytest.approx(at.truth, abs=1e-12) and variance < 1e-20
    terms = ["action 0", "action 1"] + ["board"] * (name == "leduc")
    for dropped in terms:
        assert at.scored(exact, KNOWN["both"], dropped)[1] > 1e-6
    for position, other in ((0, 1), (1, 0)):
        known = KNOWN[f"player {position}"]
        left = at.scored(exact, known)[1]
        for dropped in ("deal", f"action {position}"):
            assert at.scored(exact, known, dropped)[1] > left + 1e-6
        assert left > 1e-6, f"what player {other} does is not corrected"


@pytest.mark.parametrize("name", GAMES)
def test_all_hands_of_a_player_who_ignores_the_cards_are_averaged(name):
    """One player plays uniformly: its actions are not corrected, but the values average over its hands."""
    at = Table(name, even=1)
    for values in (random_values(at, 1), EquityHeuristic(Profile(at.game, at.strategy), at.dealing)):
        assert at.scored(values, (True, AnyHand()))[0] == pytest.approx(at.truth, abs=1e-12)
    one, all_hands = (at.scored(exact_values(at), (True, other))[1] for other in (False, AnyHand()))
    assert all_hands < one


class ResolvedLeduc(Table):
    """Leduc with a re-solved second street; seats know the blueprint and the re-solved public states."""

    range_of = resolving_seat.ResolvedRange

    def __init__(self):
        before = table("leduc")
        found = resolve_street(before.game, before.strategy, 1, effort=Effort(iterations=20)).strategy
        super().__init__("leduc", strategy=found)
        self.seat = Seat(Profile(self.game, before.strategy))
        self.seat.resolver = SimpleNamespace(street=1, at=self.public_state)

    def public_state(self, position, line, state, board):
        """Return the state of `Resolver.at`."""
        at, boards = self.betting.start()[0], self.dealing.path(state.street, board)
        for each, action, lies in line:
            assert each == at and lies == boards[each.street]
            at = self.betting.apply(at, action)
        assert at == state and at.player == position
        actions = self.betting.actions(state)
        rows = np.array([self.share(state, action, board) for action in actions])
        return SimpleNamespace(actions=actions, played=lambda: rows)


def test_the_mean_is_exact_with_re_solved_subgames():
    """Variance is zero with exact values. Planted error: re-solved actions do not narrow the ranges."""
    at = ResolvedLeduc()
    assert abs(at.truth - table("leduc").truth) > 1e-2
    for known in (KNOWN["both"], KNOWN["player 1"]):
        mean, variance = at.scored(random_values(at, 0), known)
        assert mean == pytest.approx(at.truth, abs=1e-12) and variance > 1e-3
    assert at.scored(exact_values(at), KNOWN["both"])[1] < 1e-20
    at.range_of = mutant(resolving_seat, ("action: reach * row for", "action: row for")).ResolvedRange
    at.terms = cache(at.all_terms)
    assert abs(at.scored(random_values(at, 0), KNOWN["both"])[0] - at.truth) > 1e-2


@pytest.mark.parametrize("name", GAMES)
def test_equity_values_and_known_strategies_reduce_the_variance(name):
    at = table(name)
    chips = at.scored(Dense(at, lambda spot: np.zeros(at.meet.shape)), KNOWN["neither"])[1]
    equity = EquityHeuristic(Profile(at.game, at.strategy), at.dealing)
    left = {key: at.scored(equity, known)[1] for key, known in KNOWN.items()}
    assert left["both"] < 0.2 * chips and max(left["player 0"], left["player 1"]) < chips


def test_a_correction_without_its_expected_part_is_caught(monkeypatch):
    at = table("kuhn")

    def half(self, term, expected, realised):
        self.terms[term] -= realised

    monkeypatch.setattr(_Hand, "_correct", half)
    for known in (KNOWN["both"], KNOWN["player 0"]):
        assert abs(at.scored(random_values(at, 0), known)[0] - at.truth) > 1e-2


def test_a_heuristic_fitted_on_the_scored_hands_is_caught():
    """Planted error: at each spot of the hand, the heuristic knows the hand's final chips."""

    def fitted(at, deal, played, chips):
        def value(spot):
            passed = played.actions[: len(spot.actions)] == spot.actions
            passed &= spot.street < 0 or deal.boards[spot.street] == spot.board
            return np.full(at.meet.shape, float(chips if passed else 0))

        return Dense(at, value)

    for known in (KNOWN["player 0"], KNOWN["player 1"]):
        at = table("kuhn")
        assert abs(at.scored(fitted, known)[0] - at.truth) > 1e-2


def test_an_action_that_a_known_strategy_never_takes_is_refused():
    at = table("leduc")
    caller = Seat(Profile(at.game, pure_strategy(at.game, "c")))
    deal, played = next((deal, played) for deal, played, *_ in at.histories if played.actions[0] != "c")
    ranges = [ObservedRange(caller, position) for position in range(2)]
    with pytest.raises(RuntimeError, match="its strategy never"):
        Aivat(at.dealing, at.betting, exact_values(at)).terms(deal, played, ranges)
