"""Matches: unbiased figures, intervals that cover, legal play, deals fixed by the seed.

Shows:

* A match's three estimates (as played, all-ins averaged, AIVAT) agree with the exact value
  (test_all_three_estimates_agree_with_exact_evaluation)
* Their 95 % intervals cover the exact value as often as stated
  (test_intervals_cover_the_exact_value_as_often_as_stated)
* Between policies with different bets, a match agrees with head-to-head over exact translation
  (test_policies_with_different_bets_agree_with_exact_translation)
"""

from itertools import combinations

import numpy as np
import pytest
from acpc import contender_of, opened, program
from commands import answer, call, refusal
from msgspec import structs
from naive import listed_deals
from pokerkit_table import histories
from policies import write_random
from random_policy import MENU, policy
from refusals import refused
from small_games import DEEP, MENUS, TOY, game_of
from strategies import exact_chips, random_strategy
from test_aivat import KNOWN, table

from abstraction.cards import parse_cards
from abstraction.hand_evaluator import strength
from mccfr.common.intervals import ratio95
from mccfr.config.game_tables import GoofspielGame, HoldemGame, KuhnGame, LeducGame
from mccfr.evaluation.head_to_head import head_to_head
from mccfr.evaluation.samples import Effort
from mccfr.games.betting import raise_bounds
from mccfr.games.registry import build_game
from mccfr.games.translation import actions_of
from mccfr.matches import match_series, round_robin
from mccfr.matches.aivat import Aivat
from mccfr.matches.equity_heuristic import EquityHeuristic
from mccfr.matches.hand_files.writing import write_hands
from mccfr.matches.match import LEAST_PAIRS, Contender, Match, match
from mccfr.matches.phh_format import Hand
from mccfr.matches.players import open_player
from mccfr.matches.programs import PROGRAMS, ProgramSpec, find_program
from mccfr.matches.round_robin import play_round_robin
from mccfr.play.hand_beliefs import ObservedRange
from mccfr.play.player import Program
from mccfr.play.policy_seat import PolicySpec, Seat
from mccfr.policy import Profile


def contender(game, strategy):
    return Contender("policy", PolicySpec(Profile(game, strategy)), Profile(game, strategy))


# --- estimates and intervals ---


@pytest.mark.parametrize("name", ["kuhn", "leduc", "two hole cards"])
def test_all_three_estimates_agree_with_exact_evaluation(name):
    game = game_of(name)
    a, b = random_strategy(game, 1), random_strategy(game, 2)
    truth = exact_chips((game, game), a, b)
    found = match((contender(game, a), contender(game, b)), 400, seed=3)
    assert found.hands == 400 and found.pairs.shape == (200, 3)
    errors = found.pairs.std(axis=0, ddof=1) / 200**0.5
    assert (np.abs(found.pairs.mean(axis=0) - truth) < 4.5 * errors).all()
    assert errors[2] < 0.6 * errors[0] and errors[1] <= errors[0] * 1.05


@pytest.mark.parametrize("menus", [("pot", "half or all-in"), ("two sizes", "no limp"), ("checks only", "third")])
def test_policies_with_different_bets_agree_with_exact_translation(menus):
    """Seats draw one reading of a bet, ranges keep all of them; head-to-head sums over all exactly."""
    games = [build_game(structs.replace(DEEP, menu=MENUS[menu]), None) for menu in menus]
    strategies = [random_strategy(game, seed) for seed, game in enumerate(games)]
    sides = [Profile(*pair) for pair in zip(games, strategies, strict=True)]
    truth = head_to_head(*sides)
    assert truth.ci95_chips[0] == truth.ci95_chips[1], "all boards are played"
    found = match([contender(*pair) for pair in zip(games, strategies, strict=True)], 500, seed=2)
    errors = found.pairs.std(axis=0, ddof=1) / 250**0.5
    assert (np.abs(found.pairs.mean(axis=0) - truth.mean_chips) < 4.5 * errors).all()
    assert errors[2] < 0.7 * errors[0]


def pair_values(at, known):
    """Return the probability, chips and corrected chips of player 0 in each history of a table."""
    heuristic = EquityHeuristic(Profile(at.game, at.strategy), at.dealing)
    found = []
    for deal, played, share, chips in at.histories:
        if share > 0:
            ranges = [ObservedRange(at.seat, position) if shown else None for position, shown in enumerate(known)]
            aivat = sum(Aivat(at.dealing, at.betting, heuristic).terms(deal, played, ranges).values())
            found.append((share, chips, aivat))
    return np.array(found).T


def test_intervals_cover_the_exact_value_as_often_as_stated():
    """500 matches of 100 pairs on Kuhn poker: a pair is one history of each seat, on the same deal."""
    at = table("kuhn")
    share, *values = pair_values(at, KNOWN["player 0"])
    deals = [deal for deal, _, weight, _ in at.histories if weight > 0]
    groups = [np.flatnonzero([deal == each for deal in deals]) for each in dict(listed_deals(at.dealing))]
    chance = np.array([share[group].sum() for group in groups])
    rng = np.random.default_rng(0)
    for figure in values:
        held = 0
        for _ in range(500):
            dealt = rng.choice(len(groups), LEAST_PAIRS, p=chance)
            pairs = np.empty(LEAST_PAIRS)
            for number, group in enumerate(groups):
                where = np.flatnonzero(dealt == number)
                own = share[group] / share[group].sum()
                pairs[where] = rng.choice(figure[group], (2, len(where)), p=own).mean(axis=0)
            _, (low, high) = ratio95(pairs, np.ones(LEAST_PAIRS))
            held += low <= at.truth <= high
        assert 0.92 <= held / 500 <= 0.98


def test_aivat_is_unbiased_in_holdem():
    """The means of chips and corrected chips agree, and corrected chips have a smaller deviation."""
    for name, share in (("always-all-in", 0.3), ("odd-size", 0.8)):
        found = match((contender_of(policy()), program(name)), 200, seed=4).pairs
        difference = found[:, 0] - found[:, 2]
        assert abs(difference.mean()) < 4.5 * difference.std(ddof=1) / len(found) ** 0.5
        assert found[:, 2].std() < share * found[:, 0].std()


def test_samples_depend_on_their_numbers_only(tmp_path):
    """A heuristic that learns from hands, or players with memory, would make the order matter."""
    one = contender(game_of("leduc"), random_strategy(game_of("leduc"), 1))
    contenders = one, program("random")
    whole = match(contenders, 200, seed=6)
    for unit in (57, 3):
        assert np.array_equal(Match(contenders, 6).play(unit), whole.pairs[unit])
    kept = Effort(2, keep=tmp_path / "pairs")
    assert np.array_equal(match(contenders, 200, seed=6, effort=kept).pairs, whole.pairs)
    assert np.array_equal(match(contenders, 260, seed=6, effort=kept).pairs[:100], whole.pairs)
    assert match(contenders, 201, seed=6, effort=kept).hands == 202
    refused("samples of another evaluation", match, (one, program("always-call")), 200, seed=6, effort=kept)


def test_a_heuristic_that_learns_from_scored_hands_is_detected():
    """Planted error: the heuristic's values depend on the number of hands scored before."""
    game = game_of("leduc")

    class Learning(EquityHeuristic):
        seen = 0.0

        def values(self, spot, hero, other):
            Learning.seen += 0.01
            return super().values(spot, hero, other) * (1 if spot.settled else Learning.seen)

    contenders = contender(game, random_strategy(game, 1)), program("random")
    in_order = Match(contenders, 6, Learning)
    assert [in_order.play(unit) for unit in range(5)]
    assert not np.array_equal(in_order.play(3), Match(contenders, 6).play(3))
    alone = Match(contenders, 6, Learning)
    assert not np.array_equal(alone.play(3), in_order.play(3))


# --- translation within a match ---


class Redrawing(Seat):
    """Planted error: at each decision the seat draws new readings of earlier off-tree bets."""

    def _chosen(self, state, random):
        at, self.reading = self.betting.start()[0], self.readings[0]
        for action in actions_of(self.line):
            self.reading = self._drawn(self.betting.outcomes(self.reading, at, action))
            at = self.betting.apply(at, action)
        return super()._chosen(state, random)


def after_off_tree_raise(board):
    """Return two strategies after r250 and a call, {action: [H]}: with the reading kept, and redrawn."""
    seen, seat = ObservedRange(Seat(policy()), 0), Seat(policy())
    state, _ = seat.betting.start()
    seen.see(state, "r250")
    before = [float(reach[0]) for reach in seen.reach.values()]
    state = seat.betting.apply(state, "r250")
    called = seen.choices(state, ())["c"]
    seen.chose("c")
    state = seat.betting.apply(state, "c")
    kept = seen.choices(state, board)
    seen.reach = {place: called * chance for place, chance in zip(seen.reach, before, strict=True)}
    return kept, seen.choices(state, board)


@pytest.mark.parametrize("kind", [Seat, Redrawing])
def test_a_seats_frequencies_after_off_tree_bets_match_its_range(kind):
    """Play a line of two decisions: a seat that redraws its first reading fails the comparison.

    The hand is the one for which the two strategies differ most.
    """
    seat, board = kind(policy()), (42, 22, 1)
    kept, drawn_again = after_off_tree_raise(board)
    apart = sum(np.abs(kept[action] - drawn_again[action]) for action in kept) * seat.dealing.live(1, board)
    hand, done, hands = int(apart.argmax()), dict.fromkeys(kept, 0), 2_500
    assert apart[hand] > 0.1
    for number in range(hands):
        seat.deal(0, seat.dealing.hand_text(hand), number)
        seat.see("r250")
        if seat.choose() == "c":
            seat.board(seat.dealing.board_text(1, board))
            done[seat.choose()] += 1
    chances = [float(kept[action][hand]) for action in done]
    scores = [
        abs(count / hands - chance) / (chance * (1 - chance) / hands + 1e-9) ** 0.5
        for count, chance in zip(done.values(), chances, strict=True)
    ]
    assert (max(scores) < 4.5) == (kind is Seat)


# --- sessions ---


def session(name, hands, seed=1):
    """Play hands of the random policy against a program; check each line by the rules."""
    table_ = Match((contender_of(policy()), program(name)), seed)
    found = []
    for number in range(hands):
        deal, played = table_.hand(number // 2, number % 2)
        rules, state = table_.betting.rules, table_.betting.start()[0]
        for action in played.actions:
            bounds = raise_bounds(rules, state)
            if action[0] == "r":
                assert bounds is not None and bounds[0] <= float(action[1:]) <= bounds[1]
            assert action != "f" or state.facing
            state = table_.betting.apply(state, action)
        assert isinstance(state, int)
        texts = tuple(table_.dealing.hand_text(hand) for hand in deal.hands)
        hand = Hand(played.line, texts, table_.dealing.board_text(3, deal.boards[3]))
        found.append((hand, played.fixed + played.showdown * np.sign(np.diff(hand_strengths(hand))[0])))
    return found


def hand_strengths(hand):
    """Return the hand strengths of button and big blind."""
    return [strength((*parse_cards(hole), *parse_cards(hand.board))) for hole in hand.hole[::-1]]


@pytest.mark.parametrize("hands", [20, pytest.param(4_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_sessions_are_legal_and_pokerkit_pays_the_same(name, hands, tmp_path):
    """`play_hand` checks both players' actions; PokerKit reads twenty hands and pays the same."""
    found = session(name, hands)[:: hands // 20]
    write_hands(tmp_path / "hands.phhs", [hand for hand, _ in found], HoldemGame(menu=MENU))
    for (_, state), (hand, chips) in zip(histories(tmp_path / "hands.phhs"), found, strict=True):
        assert not state.status and list(map(float, state.stacks)) == [20_000 + chips, 20_000 - chips], hand


class Cheat(Program):
    def act(self, random):
        return "r123456"


class Peeking(Program):
    """Records the cards that it is shown."""

    blind, shown = True, []

    def act(self, random):
        self.shown.append(self.hand)
        return "c"


def test_illegal_program_actions_are_refused_and_blind_programs_see_no_cards():
    game = game_of("leduc")
    one = contender(game, random_strategy(game, 1))
    with pytest.raises(ValueError, match=r"cheat, hand \d+: .*'r123456' is not possible here"):
        match((one, Contender("cheat", ProgramSpec(Cheat))), 200)
    Match((one, Contender("peeking", ProgramSpec(Peeking))), 0).play(0)
    assert Peeking.shown and not any(Peeking.shown)
    refused("are programs", match, (program("random"), program("always-call")), 200)
    assert find_program("nobody") is None


# --- the command ---


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policies")
    games = {
        "kuhn": KuhnGame(),
        "leduc": LeducGame(),
        "toy": TOY,
        "deep": structs.replace(TOY, stack=5),
        "bids": GoofspielGame(cards=3),
    }
    return {name: write_random(folder / name, config) for name, config in games.items()}


def test_the_command_prints_json_or_text(capsys, policies):
    found = answer(capsys, "match", policies["kuhn"], "random", "--hands", 201, "--seed", 5)
    assert (found["hands"], found["seed"]) == (202, 5)
    for key in ("", "allin_", "aivat_"):
        low, high = found[f"{key}ci95_chips"]
        assert low < found[f"{key}mean_chips"] < high and found[f"{key}mean_mbb"] is found[f"{key}ci95_mbb"] is None
    status, out, _ = call(capsys, "match", policies["toy"], "min-raise", "--hands", 200)
    assert status == 0 and "AIVAT" in out and "200 hands" in out


def test_runs_play_as_their_exported_policies_do(capsys, tmp_path):
    """Rounded probabilities may change one action in tens of thousands; in these hands none changes."""
    run, out = tmp_path / "run", tmp_path / "policy"
    (tmp_path / "kuhn.toml").write_text('game.name = "kuhn"\n')
    for arguments in (
        ("solve", tmp_path / "kuhn.toml", "--run", run, "--iterations", 3_000, "--workers", 0),
        ("export", run, out),
    ):
        assert call(capsys, *arguments).status == 0
    found = [answer(capsys, "match", one, "random", "--hands", 200) for one in (run, out)]
    assert found[0]["mean_chips"] == found[1]["mean_chips"] > 0
    assert found[0]["aivat_mean_chips"] == pytest.approx(found[1]["aivat_mean_chips"], abs=1e-3)


def test_user_programs_are_found_in_the_current_directory(capsys, policies, tmp_path, monkeypatch):
    (tmp_path / "my_players.py").write_text(
        "from mccfr.play import Program\n\n\nclass Timid(Program):\n"
        '    def act(self, random):\n        return "f" if self.may_fold and self.hand < "K" else "c"\n'
    )
    monkeypatch.chdir(tmp_path)
    assert answer(capsys, "match", "my_players:Timid", policies["kuhn"], "--hands", 200)["a"] == "my_players:Timid"


def test_impossible_matches_are_refused_in_one_sentence(capsys, policies, tmp_path):
    for arguments, said in (
        ((policies["kuhn"], policies["leduc"]), "the game is 'kuhn' for the first and 'leduc' for the second"),
        ((policies["toy"], policies["deep"]), "two strategies can only be compared in one game"),
        ((policies["kuhn"], "random", "--hands", 198), "at least 200 are needed"),
        ((policies["kuhn"], "always-cal"), "did you mean 'always-call'"),
        ((policies["bids"], "random"), "deals no cards outside of its tree"),
        ((policies["kuhn"], "random", "--log", tmp_path / "x.phhs"), "whole no-limit hold'em only"),
        (("random", "always-call"), "one of the players must be a policy"),
        ((policies["kuhn"], "nothing:Here"), "there is no module 'nothing'"),
    ):
        assert said in refusal(capsys, "match", *arguments)
    assert not (tmp_path / "x.phhs").exists()


def test_the_log_holds_the_hands_that_were_scored(monkeypatch, tmp_path):
    """Compare PokerKit's payments of a log with the mean of the chips, by name, for whole hold'em."""
    named = {"policy": opened(policy(), "policy"), "always-fold": open_player("always-fold")}
    monkeypatch.setattr(match_series, "open_player", lambda name, _: named[name])
    (tmp_path / "letter").write_text("letter")
    with pytest.raises(FileExistsError, match="not an earlier output"):
        match_series.play_match(("policy", "always-fold"), 200, seed=2, log=tmp_path / "letter")
    found = match_series.play_match(("policy", "always-fold"), 200, seed=2, log=tmp_path / "hands.phhs")
    hands = histories(tmp_path / "hands.phhs")
    assert [hand.players for hand, _ in hands[:2]] == [["policy", "always-fold"], ["always-fold", "policy"]]
    won = [float(state.stacks[hand.players.index("policy")]) - 20_000 for hand, state in hands]
    assert len(won) == found["hands"] and np.mean(won) == pytest.approx(found["mean_chips"], abs=1e-9)
    assert found["mean_mbb"] == pytest.approx(found["mean_chips"] * 10)


# --- round-robin tournaments ---


@pytest.fixture
def names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        write_random(tmp_path / f"random{number}", KuhnGame(), seed=number)
    return ["random1", "random2", "always-call"]


def test_a_tournament_plays_every_pair_on_the_same_deals(names, capsys):
    found = answer(capsys, "rank", *names, "--hands", 200, "--seed", 3)
    assert [(each["a"], each["b"]) for each in found["matches"]] == list(combinations(names, 2))
    for each in found["matches"]:
        alone = answer(capsys, "match", each["a"], each["b"], "--hands", 200, "--seed", 3)
        assert {**alone, "seconds": 0} == {**each, "seconds": 0}
    means = [player["mean_chips"] for player in found["players"]]
    assert means == sorted(means, reverse=True) and sum(means) == pytest.approx(0, abs=1e-12)
    won = {(each["a"], each["b"]): each["aivat_mean_chips"] for each in found["matches"]}
    mean = {player["name"]: player["mean_chips"] for player in found["players"]}
    assert mean["random1"] == pytest.approx((won["random1", "random2"] + won["random1", "always-call"]) / 2)
    text = call(capsys, "rank", *names, "--hands", 200, "--seed", 3).out
    best = found["players"][0]
    assert text.splitlines()[1].startswith(f"1 {best['name']}  ") and f"{best['mean_chips']:+.4g}" in text


def test_a_tournaments_interval_counts_a_shared_deal_once(names):
    """One deal's results in all matches are one sample; independent matches would give another interval."""
    opened = [open_player(name).contender for name in names]
    units = np.array([match((opened[0], other), 200, 1).pairs[:, 2] for other in opened[1:]]).mean(axis=0)
    mean, interval = ratio95(units, np.ones(len(units)))
    player = next(each for each in play_round_robin(names, 200, 1)["players"] if each["name"] == names[0])
    assert player["mean_chips"] == pytest.approx(mean) and player["ci95_chips"] == pytest.approx(interval)


def test_a_tournament_resumes_and_a_new_name_adds_only_its_own_matches(names, capsys, tmp_path, monkeypatch):
    whole = play_round_robin(names, 200)
    kept = tmp_path / "kept"
    play_round_robin(names[:2], 200, keep=kept)
    played, play = [], round_robin.play_opened

    def counted(pair, *args, **options):
        before = options["effort"].keep.exists()
        played.append((pair[0].contender.name, pair[1].contender.name, before))
        return play(pair, *args, **options)

    monkeypatch.setattr(round_robin, "play_opened", counted)
    again = play_round_robin(names, 200, keep=kept)
    assert [before for _, _, before in played] == [True, False, False] and len(list(kept.iterdir())) == 3
    assert {**again, "matches": 0, "seconds": 0} == {**whole, "matches": 0, "seconds": 0}
    for wrong, words in (
        (["random1"], "at least two names"),
        (["random1", "random1"], "each of them once"),
        (["random1", "always-call", "random"], "always-call and random are programs, which name no game"),
        (["random1", "nobody"], "nobody is neither a policy"),
    ):
        assert words in refusal(capsys, "rank", *wrong)
