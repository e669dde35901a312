"""The ACPC protocol with three and more players: real lines, duplicate deals, external programs.

Shows:

* In a match of three with an external program, actions are legal and chips sum to zero
  (test_an_external_program_plays_at_the_dealer)
* The dealer pays side pots and run-outs as PokerKit does (planted: test_the_dealer_pays_as_pokerkit)
"""

import subprocess
import sys

import pytest
from acpc import dealing
from pokerkit_table import PokerKitTable
from random_policy import policy
from refusals import refused

from abstraction.cards import parse_cards
from mccfr.config.game_tables import HoldemGame, Menu
from mccfr.games.betting import Pot
from mccfr.games.full_betting import real_rules
from mccfr.games.translation import actions_of
from mccfr.matches import acpc, bot_sessions
from mccfr.matches.acpc import TableError, acpc_rules, follow_line, read_state, won_chips
from mccfr.matches.acpc_log import MatchLog, bot_replay, read_hand
from mccfr.matches.acpc_session import AcpcSession
from mccfr.matches.bot_sessions import ServerPlayer, _betting
from mccfr.matches.dealer import LocalSeat, MatchDealer, MatchPlan, replay_of, score_text, scores
from mccfr.matches.json_server_hand import check_game
from mccfr.matches.programs import PROGRAMS
from mccfr.play.policy_seat import Seat

REAL = """\
MATCHSTATE:2:257:cr17261cf/r18594r19956r20000:||7h6s/4s6c3s
MATCHSTATE:2:257:cr17261cf/r18594r19956r20000c//:2dAs|2c5c|7h6s/4s6c3s/Qc/5h
MATCHSTATE:1:258::|7sQh|
MATCHSTATE:1:258:f:|7sQh|
MATCHSTATE:1:258:ff:|7sQh|""".splitlines()
"""Lines of an ACPC dealer to one of three players, from hand 257 on."""

CALLER = """
import re, socket, sys

link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
link.sendall(b"VERSION:2.0.0\\r\\n")
for line in link.makefile("r", newline="\\r\\n"):
    _, position, _, betting, _ = line.strip().split(":")
    put_in, folded, queue = [50, 100, 0], set(), [2, 0, 1]
    for action in re.findall("r[0-9]+|.", betting):
        if action == "/":
            queue = [seat for seat in range(3) if seat not in folded and put_in[seat] < 2000]
            continue
        seat = queue.pop(0)
        if action == "f":
            folded.add(seat)
        else:
            put_in[seat] = int(action[1:]) if action[0] == "r" else max(put_in)
        if action[0] == "r":
            others = (seat + 1) % 3, (seat + 2) % 3
            queue = [other for other in others if other not in folded and put_in[other] < 2000]
    alone = len(queue) == 1 and put_in[queue[0]] == max(put_in) and betting.endswith("/")
    if queue and queue[0] == int(position) and len(folded) < 2 and not alone:
        link.sendall(f"{line.strip()}:c\\r\\n".encode())
"""
"""Source of a program that always checks or calls, without imports from this package."""


def plan(seats=3, hands=30, duplicate=False, stack=2_000.0):
    return MatchPlan(stack, (50.0, 100.0), hands, 4, duplicate, ("Ada", "Bob", "Cem", "Dan", "Eve", "Fay")[:seats])


def seat(name, of, seed=1):
    rules = acpc_rules(of.game, name)
    if name == "policy":
        menu = Menu(first=("1p",), later=("1p", "allin"), max_bets=2, limp=False)
        player = Seat(policy(menu, of.stack, len(of.names), flop_players=2), seed=seed)
    else:
        player = PROGRAMS[name](_betting(of.game), seed=seed)
    return ServerPlayer(name, player, of.game, rules)


def local(names, of):
    return [LocalSeat(AcpcSession((own := seat(name, of, seed)).player, own.rules)) for seed, name in enumerate(names)]


def play_hands(of, names, warned=lambda _: None):
    dealer = MatchDealer(of, local(names, of), warned=warned)
    return [dealer.play(number) for number in range(of.hands)], dealer


def test_a_real_dealers_lines_of_three_players_are_read():
    rules, seen = acpc_rules(HoldemGame(seats=3), "policy"), []
    client = AcpcSession(PROGRAMS["always-fold"](_betting(HoldemGame(seats=3))), rules, seen.append)
    for line in REAL:
        state = read_state(line)
        assert state.text() == line and follow_line(rules, state.betting).text == state.betting
        client.answer(line.encode())
    (first, second) = seen
    assert first.chips == (50, 50, -100) and first.position == 2  # two straights to the six
    assert second.chips == (-50, 50, 0)
    for text in (REAL[2].replace("|7sQh|", "|7sQh"), REAL[2].replace(":1:", ":3:"), REAL[2] + "|"):
        refused("is not of 3 players", client.answer, text.encode(), error=TableError)


@pytest.mark.parametrize("seats", [3, 6])
def test_matches_are_legal_and_their_logs_are_read(tmp_path, seats):
    of, said = plan(seats, 30), []
    names = ("policy", "odd-size", "random", "policy", "always-all-in", "min-raise")[:seats]
    hands, dealer = play_hands(of, names, said.append)
    assert not dealer.changed and not said
    assert all(sum(hand.chips) == 0 and len(hand.names) == seats for hand in hands)
    assert sum(score.chips for score in scores(of, hands)) == 0
    log = MatchLog(tmp_path / "log", of.fields(), replay_of(of))
    for hand in hands:
        log.add(hand)
    log.close_with(score_text(of, scores(of, hands)))
    log.close()
    again = MatchLog(tmp_path / "log", of.fields(), replay_of(of))
    assert again.hands == hands and again.score
    again.close()
    text, replay = hands[0].text(), bot_replay(dealer._rules, of.names)
    assert [replay((), hand.text()) for hand in hands] == hands
    refused(r"comes after hand \d+: expected hand \d+ or a later one", replay, (), text, error=TableError)
    other = text.replace(f":{text.split(':')[4]}:", ":1|-1|0|0|0|0"[: 2 * seats + 1] + ":")
    refused("does not say what was won", bot_replay(dealer._rules, of.names), (), other, error=TableError)
    refused("is not STATE", read_hand, text.replace("Ada|", ""), error=TableError)


@pytest.mark.parametrize("seats", [2, 3])
def test_each_deal_is_played_in_every_seat(seats):
    of, deals = plan(seats, 12, duplicate=True), 12 // seats
    hands, _ = play_hands(of, ("always-call",) * seats)
    for deal in range(deals):
        parts = [hands[deal + part * deals] for part in range(seats)]
        assert len({(hand.holes, hand.board) for hand in parts}) == 1
        assert {hand.names[0] for hand in parts} == set(of.names)
    assert len({hand.holes for hand in hands}) == deals
    assert [(score.mean, score.ci95) for score in scores(of, hands)] == [(0, (0, 0))] * seats
    refused("duplicate deals need a", plan, seats, hands=7, duplicate=True)


def test_a_missing_rotation_is_detected(monkeypatch):
    """Planted error: the last part repeats the first part's seats, so equal players win different chips."""
    of = plan(hands=12, duplicate=True)
    right = MatchPlan.seating
    monkeypatch.setattr(MatchPlan, "seating", lambda self, n: (right(self, n)[0], right(self, n % 8)[1]))
    hands, _ = play_hands(of, ("always-call",) * 3)
    assert [score.mean for score in scores(of, hands)] != [0, 0, 0]


def pokerkit_chips(hand, of):
    """Return the chips of each position in a logged hand, computed by PokerKit."""
    seats = len(of.names)
    cards = parse_cards("".join((*hand.holes, *hand.board)))
    table = PokerKitTable([int(of.stack)] * seats, 0, (50, 100) + (0,) * (seats - 2), cards)
    for action in actions_of(hand.betting):
        table.play(action if action in ("f", "c") else float(action[1:]), table.put_in_before())
    return tuple(chips - int(of.stack) for chips in table.state.stacks)


def test_the_dealer_pays_as_pokerkit(monkeypatch):
    of = plan(hands=60)
    hands, _ = play_hands(of, ("random", "random", "odd-size"))
    assert sum(hand.betting.count("/") == 3 and hand.chips.count(0) < 2 for hand in hands) > 5
    for hand in hands:
        assert pokerkit_chips(hand, of) == hand.chips
    whole = real_rules(of.game)
    monkeypatch.setattr(acpc, "payoffs", lambda rules, end, ranks: split_evenly(rules, end))
    wrong = [won_chips(whole, follow_line(whole, hand.betting), hand.holes, hand.board) for hand in hands]
    assert any(one != hand.chips for one, hand in zip(wrong, hands, strict=True))


def split_evenly(rules, end):
    """Planted error: all players who have not folded share the pot, whatever their hands."""
    pot = Pot(sum(end.put_in), 0)
    return [pot.chips / len(end.left) * (player in end.left) - chips for player, chips in enumerate(end.put_in)]


def test_an_external_program_plays_at_the_dealer(tmp_path):
    (tmp_path / "caller.py").write_text(CALLER)
    of = plan(hands=60)
    with dealing(of, [seat("policy", of), seat("random", of)], ports=[0]) as (port, came, said):
        program = subprocess.run([sys.executable, tmp_path / "caller.py", str(port)], timeout=60, check=True)
    assert "error" not in came and program.returncode == 0
    assert not [text for text in said if "not legal" in text or "is ignored" in text or "disconnected" in text]
    assert sum(score.chips for score in came["score"]) == 0 and came["score"][2].hands == 60
    record = came["record"]
    assert [player["name"] for player in record["players"]] == ["Ada", "Bob", "Cem"]
    assert record["b"] == "Bob, Cem" and record["chips"] == record["players"][0]["chips"]
    assert len(bot_sessions.record_text(record).splitlines()) == 4


def test_games_that_servers_do_not_offer_are_refused():
    refused("the server plays with .* and policy is for 3 players", check_game, HoldemGame(seats=3), "policy")
    for keys, words in (
        ({"stacks": (2_000, 2_000, 1_000)}, "equal stacks"),
        ({"big_blind_ante": 100}, "no antes and no fractions of chips, unlike 3 players, stacks of 20000"),
    ):
        refused(words, acpc_rules, HoldemGame(seats=3, **keys), "policy")
