"""Local best response in full hold'em: sampling, averaging, and the command.

Shows:

* In hold'em, local best response wins what it wins in hands played against the policy's seat
  (test_averaged_result_equals_hands_against_the_policys_seat, test_always_fold_loses_750_mbb)
"""

import json
from functools import cache

import numpy as np
import pytest
import random_policy
from commands import answer, call, refusal
from policies import write_random
from strategies import tabulate

from abstraction.cards import cards_text, combo_index, combo_text, parse_cards
from abstraction.hand_evaluator import board_strengths
from mccfr.api.evaluating import evaluate_open_strategy
from mccfr.common.rng import new_stream
from mccfr.config.game_tables import GoofspielGame, LeducGame
from mccfr.evaluation.local_best_response import local_best_response
from mccfr.evaluation.local_best_response.hand import PolicyRows, Responder, all_of_them
from mccfr.evaluation.local_best_response.lbr_evaluation import _DeckSamples, without_luck
from mccfr.evaluation.local_best_response.responder_deals import DeckBoard, DeckHand, DeckTable
from mccfr.evaluation.local_best_response.settings import ResponderBetting
from mccfr.evaluation.methods.registry import method_for
from mccfr.games.betting import BettingState, fold_value
from mccfr.games.translation import real_betting
from mccfr.play.policy_seat import Seat
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.results.targets import Target
from mccfr.tables.strategy import pure_strategy

GAME = random_policy.policy().game


@cache
def random_side():
    return Profile(GAME, tabulate(GAME, random_policy.policy().row))


def table(looks=frozenset((0, 1, 2, 3))):
    return DeckTable(GAME.cards, 0, set(looks))


def hand(text):
    return combo_index(*parse_cards(text))


def on_board(board, own, street, looks=frozenset((0, 1, 2, 3)), seed=0):
    return DeckHand(DeckBoard(table(looks), list(parse_cards(board)), new_stream(seed, 0)), hand(own), street)


# --- known values of simple strategies ---


@pytest.mark.parametrize("setting", ["2", "3", "4", "fcpa"])
def test_always_fold_loses_750_mbb(setting):
    found = local_best_response(Profile(GAME, pure_strategy(GAME, "f")), setting, hands=100)
    assert found.best_response_chips == pytest.approx((50, 100), abs=1e-9), (
        "the small blind, and the big one after a bet"
    )


def test_always_fold_loses_250_mbb_if_the_responder_never_bets():
    found = local_best_response(Profile(GAME, pure_strategy(GAME, "f")), "1", hands=150)
    low, high = found.ci95_chips
    assert low <= 25 <= high and high - low < 15
    assert found.best_response_chips[0] == pytest.approx(50, abs=1e-9)


def test_auto_evaluates_a_strategy_by_lbr_and_a_run_by_head_to_head():
    found = Target(GAME, pure_strategy(GAME, "f"), {})
    record = evaluate_open_strategy(found, "auto", hands=100)
    assert (record["method"], record["bound"], record["value_chips"]) == ("lbr", "lower", pytest.approx(75))
    assert method_for(GAME, "auto").name == "head-to-head", "of [evaluation]"
    assert evaluate_open_strategy(found, "auto", boards=10)["method"] == "sampled-br"
    other = Profile(GAME, pure_strategy(GAME, "c"))
    assert evaluate_open_strategy(found, "auto", lambda: (other, "calls"), boards=2)["against"] == "calls"


# --- sampling and averaging ---


def test_samples_are_deals_of_nine_cards():
    for number in range(20):
        board, hands, _ = table().deal(number)
        cards = [*board.cards, *(card for pair in hands for card in parse_cards(combo_text(pair)))]
        assert len(set(cards)) == 9
        again, same, _ = table().deal(number)
        assert again.cards == board.cards and same == hands


def test_hand_weights_sum_to_1_on_every_street():
    """Hands that a board leaves have total weight 1 before any action."""
    board, hands, _ = table().deal(3)
    deal = DeckHand(board, hands[0])
    weight = deal.prior()
    for left in (1225, 1081, 1035, 990):
        assert weight.sum() == pytest.approx(1, abs=1e-12)
        assert (weight > 0).sum() == left
        if left > 990:
            ((deal, factor),) = deal.following
            weight = weight * factor


@pytest.mark.parametrize(("board", "street"), [("Qs7h2d3c9h", 3), ("Qs7h2d3c9h", 2), ("Qs7h2d3c9h", 1)])
def test_equity_is_the_mean_over_all_remaining_boards(board, street):
    deal = on_board(board, "AsQd", street)
    cards, own = list(parse_cards(board))[: street + 2], parse_cards("AsQd")
    for text in ("KsKd", "7s7d", "AhJh"):
        other = parse_cards(text)
        left = [card for card in range(52) if card not in {*cards, *own, *other}]
        to_come = [[]] if street == 3 else [[a] for a in left]
        if street == 1:
            to_come = [[a, b] for a in left for b in left if a < b]
        orders = [board_strengths(cards + more)[[hand("AsQd"), hand(text)]] for more in to_come]
        balance = np.mean([np.sign(int(one) - int(two)) for one, two in orders])
        assert deal.equity[hand(text)] == pytest.approx(balance, abs=1e-12)


def test_equity_before_the_flop_is_approximate():
    deal = on_board("Qs7h2d3c9h", "AcAd", 0)
    assert deal.equity[hand("KsKh")] == pytest.approx(2 * 0.8236 - 1, abs=0.05)
    assert deal.equity[hand("7s6s")] == pytest.approx(2 * 0.771 - 1, abs=0.06)


@pytest.mark.parametrize("street", [0, 1])
def test_all_in_settlement_is_unbiased(street):
    """Compare the mean settlement over 300 draws of run-outs with the equity."""
    found = np.array([on_board("Qs7h2d3c9h", "AsQd", street, frozenset(), seed).settlement for seed in range(300)])
    truth = on_board("Qs7h2d3c9h", "AsQd", street).equity
    others = np.flatnonzero(on_board("Qs7h2d3c9h", "AsQd", street).prior())
    if street == 1:
        others = others[GAME.cards.bucket_row(1, 0, list(parse_cards("Qs7h2d")))[others] >= 0]
    error = found[:, others].std(axis=0) / np.sqrt(len(found))
    slack = 0.03 if street == 0 else 1e-9  # equity before the flop is sampled itself
    assert (np.abs(found[:, others].mean(axis=0) - truth[others]) < 5 * error + slack).all()


def test_luck_has_mean_0_and_subtracting_it_reduces_the_spread():
    luck = np.array([[board.luck(hand) for hand in hands] for board, hands, _ in map(table().deal, range(1500))])
    assert (np.abs(luck.mean(axis=0)) < 4 * luck.std(axis=0) / np.sqrt(1500)).all()
    chips = 100 * luck + np.random.default_rng(0).normal(5, 10, luck.shape)
    rest = without_luck(chips, luck)
    assert rest.std() < 10.5 and chips.std() > 50
    assert rest.mean() == pytest.approx(5, abs=0.7)
    first = without_luck(np.where(np.arange(1500)[:, None] % 2, 0, chips), luck)
    assert np.array_equal(first[::2], chips[::2]), "what is taken off a unit is not fitted on it"


def test_an_all_in_on_the_turn_is_settled_over_all_rivers():
    deal = on_board("Qs7h2d3c9h", "AsQd", 2, frozenset())
    assert np.array_equal(deal.settlement, deal.equity)


def equity_depends_on_the_river():
    before = [on_board(f"Qs7h2d3c{river}", "AsQd", street).equity for river in ("9h", "As") for street in (1, 2)]
    return not (np.array_equal(before[0], before[2]) and np.array_equal(before[1], before[3]))


def test_a_responder_who_sees_the_river_early_is_caught(monkeypatch):
    assert not equity_depends_on_the_river()
    monkeypatch.setattr(DeckHand, "equity", lambda deal: DeckHand(deal._board, deal._hand, 3)._equity)
    assert equity_depends_on_the_river()


# --- the estimator against hands played to the end ---


def played_out(lines, rows, seat, unit, policy_seat):
    """Return the responder's chips in a hand that the policy's seat plays with the other cards."""
    board, hands, _ = table().deal(unit)
    responder, deal = Responder(lines, rows, seat, all_of_them), DeckHand(board, hands[seat])
    policy_seat.deal(1 - seat, combo_text(hands[1 - seat]), unit)
    state, readings = lines.betting.start()
    ranges = {(node, closed): deal.prior() for node, _, closed in readings}
    while True:
        if state.player == seat:
            action = responder.best_action(state, ranges, deal)
            ranges = responder.ranges_after(ranges, state, action)
            policy_seat.see(action)
        else:
            action = policy_seat.choose()
            ranges = responder.answers(state, ranges, deal)[action]
        after = lines.apply(state, action)
        if not isinstance(after, BettingState):
            break
        if after.street != state.street:
            ((deal, factor),) = deal.following
            ranges = {place: weight * factor for place, weight in ranges.items()}
            policy_seat.board(cards_text(board.cards[: 2 + after.street]))
        state = after
    if action == "f":
        chips = fold_value(state)
    else:
        order = board_strengths(board.cards)[list(hands)].astype(int)
        chips = state.to_call * np.sign(order[0] - order[1])
    return chips if seat == 0 else -chips


@pytest.mark.slow
@pytest.mark.parametrize(("setting", "hands"), [("2", 3000), ("fcpa", 800)])
def test_averaged_result_equals_hands_against_the_policys_seat(setting, hands):
    """Compare with hands in which the policy samples its cards, readings and actions."""
    side = random_side()
    lines, rows = ResponderBetting(real_betting(GAME), setting), PolicyRows(side)
    units, seat_of_policy = _DeckSamples(side, lines, 0), Seat(random_policy.policy(), seed=9)
    averaged = np.array([units.play(unit)[:2] for unit in range(hands)])
    played = np.array(
        [[played_out(lines, rows, seat, unit, seat_of_policy) for seat in range(2)] for unit in range(hands)]
    )
    for seat in range(2):
        rest = averaged[:, seat] - played[:, seat]
        assert abs(rest.mean()) < 3.5 * rest.std() / np.sqrt(len(rest))
        assert averaged[:, seat].std() < 0.7 * played[:, seat].std(), "or nothing is won by averaging"


# --- the command ---


def test_lbr_command_and_its_refusals(tmp_path, capsys):
    policy = write_random(tmp_path / "leduc", LeducGame())
    found = answer(capsys, "evaluate", policy, "--method", "lbr")
    assert found["method"] == "lbr" and found["bound"] == "lower" and found["setting"] == "2"
    assert found["exploitability_chips"] == found["value_chips"] == np.mean(found["best_response_chips"])
    assert found["ci95_chips"] == [found["value_chips"]] * 2 and found["hands"] is None
    sampled = call(capsys, "evaluate", policy, "--method", "lbr", "--hands", 100, "--seed", 1, "--json")
    record = json.loads(sampled.out)
    assert (record["hands"], record["units"], record["seed"]) == (100, 100, 1)
    assert record["ci95_chips"][0] < record["value_chips"] < record["ci95_chips"][1]
    folds = call(capsys, "evaluate", policy, "--method", "lbr", "--strategy", "always-fold")
    assert "exploitability at least 1 chips: what local best response in setting 2 wins (every deal" in folds.out
    for options, expected in [
        (("--hands", 99), "hands = 99: at least 100 are needed"),
        (("--setting", "5"), "setting = '5' is not allowed: it must be one of 1, 2, 3, 4, fcpa"),
        (("--strategy", "mine"), "must be one of uniform, always-call, always-fold"),
    ]:
        assert expected in refusal(capsys, "evaluate", policy, "--method", "lbr", *options)
    cards = write_random(tmp_path / "goofspiel", GoofspielGame(cards=3))
    message = refusal(capsys, "evaluate", cards, "--method", "lbr")
    assert "deals no cards outside of its tree: use the method exact" in message
    message = refusal(capsys, "evaluate", policy, "--method", "exact", "--setting", "2")
    assert "the method exact has no --setting" in message
