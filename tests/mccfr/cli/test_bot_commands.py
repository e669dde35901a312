"""Bots, dealers and human players on the command line: real connections, invalid input.

Shows:

* Bots play legal hands against a dealer and a Slumbot test server
  (test_a_bot_plays_legally_at_the_dealer_and_agrees_on_chips, test_hands_are_legal_and_both_sides_agree,
  test_twenty_thousand_hands_at_the_dealer)
* A bot stopped by a signal keeps the hands that it has played (test_a_signal_ends_a_bot_and_its_log_keeps_the_hands)
"""

import json
import os
import re
import signal
import socket
import threading
from contextlib import suppress
from random import Random

import pytest
from acpc import cut, dealing, free_port, opened, plan, player, rules, scripted, session, visit
from commands import answer, call
from gtowizard_double import Wizard
from pokerkit_table import histories
from policies import write_random
from random_policy import policy
from refusals import refused
from slumbot_double import Double, http_server
from small_games import TOY

from mccfr.cli import bot_commands as commands
from mccfr.config.game_tables import KuhnGame, LeducGame
from mccfr.matches import bot_sessions
from mccfr.matches.acpc import TableError
from mccfr.matches.acpc_bot import play_acpc
from mccfr.matches.dealer import Clock
from mccfr.matches.dealer_connections import listening
from mccfr.matches.programs import PROGRAMS
from mccfr.play.player import Program


@pytest.fixture
def holdem(monkeypatch, tmp_path):
    """Let the name `holdem` open a random policy that is not on the disk."""
    find = bot_sessions.open_player

    def named(name, manner, **given):
        return opened(policy(), name, manner.spec(policy())) if name == "holdem" else find(name, manner, **given)

    monkeypatch.setattr(bot_sessions, "open_player", named)
    monkeypatch.chdir(tmp_path)


PATIENT = Clock(per_hand=120.0)
"""A clock for bots that re-solve flops while other tests run."""


class Overbet(Program):
    """Bets two to four times the pot."""

    def act(self, random):
        low, high = self.raises((0.0, 1.0)) or ("c", "c")
        if low == "c" or self.line.count("r") > 3:
            return "c"
        pot = 2 * self.state.to_call
        return f"r{int(min(max(self.state.to_call + pot * random.uniform(2, 4), float(low[1:])), float(high[1:])))}"


def check_over_a_connection(program, hands, name="policy"):
    of, seen = plan(hands=hands, duplicate=True), []
    with dealing(of, [scripted(program, of)], ports=[0], clock=PATIENT) as (port, result, messages):
        visit(port, seen.append, name)
    assert "error" not in result and len(seen) == hands
    assert not [text for text in messages if "not legal" in text or "is ignored" in text or "disconnected" in text]
    assert result["score"][1].chips == sum(hand.chips[hand.position] for hand in seen)
    return result["score"][0]


@pytest.mark.parametrize("program", [PROGRAMS["min-raise"], PROGRAMS["odd-size"], Overbet, PROGRAMS["random"]])
def test_a_bot_plays_legally_at_the_dealer_and_agrees_on_chips(program):
    """Play over a connection; bot and dealer must count the same chips."""
    assert check_over_a_connection(program, 24).hands == 24


@pytest.mark.parametrize("program", [PROGRAMS["odd-size"], PROGRAMS["random"]])
def test_a_resolving_bot_plays_legally_and_agrees_on_chips(program):
    check_over_a_connection(program, 6, "resolving")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "hands"), [("resolving", 100), ("resolving from the turn", 100), ("resolving from the flop", 16)]
)
@pytest.mark.parametrize("program", [PROGRAMS["min-raise"], PROGRAMS["odd-size"], Overbet, PROGRAMS["random"]])
def test_hundreds_of_hands_of_a_resolving_bot(program, name, hands):
    check_over_a_connection(program, hands, name)


@pytest.mark.slow
@pytest.mark.parametrize("program", [PROGRAMS["min-raise"], PROGRAMS["odd-size"], Overbet, PROGRAMS["random"]])
def test_twenty_thousand_hands_at_the_dealer(program):
    """Play 5,000 hands against each of four programs."""
    check_over_a_connection(program, 5_000)


def run_dealer(capsys, *arguments, finished=lambda _: None, name="min-raise"):
    """Run a dealer command while a program plays at its port."""
    port = free_port()

    def come():
        with suppress(ConnectionError):  # the dealer may close the connection in the middle of a hand
            visit(port, finished, name)

    thread = threading.Thread(target=come)
    thread.start()
    ended = call(capsys, "dealer", *arguments, "--port", port, "--json")
    thread.join()
    return ended


def test_the_commands_play_a_match_and_continue_from_its_log(capsys, holdem, tmp_path):
    """Play a match of a bot and a dealer with a program; both print the same interval."""
    log, phhs, diary = tmp_path / "match.log", tmp_path / "match.phhs", tmp_path / "bot.log"
    of = ("--hands", 30, "--seed", 4, "--duplicate", "--names", "Ada,Bob", "--with", "odd-size", "--log", log)
    ended = run_dealer(capsys, *of, "--phhs", phhs, name="random")
    found = json.loads(ended.out)
    assert ended.status == 0 and (found["a"], found["b"], found["hands"]) == ("Ada", "Bob", 30), ended.err
    assert answer(capsys, "dealer", *of, "--port", free_port()) == found
    assert len(histories(phhs)) == 30
    of = plan(hands=30)
    with dealing(of, [scripted(PROGRAMS["odd-size"], of)], ports=[0]) as (port, result, _):
        found = answer(capsys, "bot", "acpc", "holdem", "127.0.0.1", port, "--log", diary)
    low, high = result["score"][0].ci95
    assert (found["hands"], found["pairs"]) == (30, None)
    assert found["ci95_chips"] == pytest.approx([-high, -low])
    assert sum(line.startswith("STATE:") for line in diary.read_text().splitlines()) == 30


class Stopping(PROGRAMS["odd-size"]):
    """Sends SIGTERM to the process after a while."""

    left = 20

    def act(self, random):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().act(random)


def test_a_signal_ends_a_bot_and_its_log_keeps_the_hands(capsys, holdem, tmp_path):
    """End with status 143 and one sentence; the log has all hands that were played."""
    diary, of = tmp_path / "bot.log", plan(hands=1_000)
    with dealing(of, [scripted(Stopping, of)], ports=[0], clock=Clock(response=0.5)) as (port, result, _):
        status, _, err = call(capsys, "bot", "acpc", "holdem", "127.0.0.1", port, "--log", diary)
    played = sum(line.startswith("STATE:") for line in diary.read_text().splitlines())
    assert status == 143 and f"stopped by signal 15 after {played} hands; they are in {diary}" in err and played > 2
    assert "has not answered" in str(result["error"])


def test_a_signal_ends_a_dealer_and_its_match_can_continue(capsys, holdem, tmp_path):
    """End with status 143 and one sentence; the same command plays the other hands."""
    log = tmp_path / "match.log"
    of = ("--hands", 30, "--seed", 4, "--with", "odd-size", "--log")
    seen = []

    def finished(hand):
        seen.append(hand)
        if len(seen) == 10:
            os.kill(os.getpid(), signal.SIGTERM)

    status, _, err = run_dealer(capsys, *of, log, finished=finished)
    played = sum(line.startswith("STATE:") for line in log.read_text().splitlines())
    assert status == 143
    assert f"stopped by signal 15 after {played} of 30 hands; the same command goes on from {log}" in err
    assert 9 <= played < 30
    went_on, straight = (run_dealer(capsys, *of, path) for path in (log, tmp_path / "whole.log"))
    assert went_on.status == straight.status == 0
    assert json.loads(went_on.out) == json.loads(straight.out)


def test_a_player_reconnects_after_a_lost_connection():
    """Shut the connection during a hand, several times; all hands are played."""
    of, seen = plan(hands=12), []
    one = session("policy", finished=seen.append)
    with dealing(of, [scripted(PROGRAMS["min-raise"], of)], ports=[0]) as (port, result, messages):
        for _ in range(3):
            cut(one, port)
        play_acpc(one, "127.0.0.1", port, patience=10, silence=30)
    assert result["score"][0].hands == 12 and [hand.number for hand in seen] == list(range(12))
    assert sum("has disconnected" in text for text in messages) >= 3


# --- errors of connections, bad input ---


def test_a_bot_leaves_a_silent_dealer():
    expected = pytest.raises(TableError, match=r"127.0.0.1:\d+ has sent nothing for 0.2 s")
    with listening("127.0.0.1", 0) as listener, expected:
        visit(listener.getsockname()[1], silence=0.2)


def test_a_bot_reports_at_once_that_no_server_answers_and_how_long_it_tries(capsys, holdem):
    port = free_port()
    code, _, err = call(capsys, "bot", "acpc", "holdem", "127.0.0.1", port, "--patience", "1s")
    first, last = err.splitlines()
    assert code == 2 and re.fullmatch(
        rf"mccfr: no server answers at 127.0.0.1:{port} \(Connection refused\): trying until \d\d:\d\d:\d\d, for 1 s "
        r"\(--patience\)",
        first,
    )
    assert last == f"mccfr: no server answers at 127.0.0.1:{port}: Connection refused"


def answered_with(data, port_to):
    """Accept one connection, send data and close it."""
    with listening("127.0.0.1", 0) as listener:
        port_to.append(listener.getsockname()[1])
        port_to[0].set()
        connection, _ = listener.accept()
        with connection:
            connection.recv(100)
            connection.sendall(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "closed the connection before the first hand: it may need another version"),
        (b"x" * 10_000, "a line of more than 4,096 bytes"),
        (b"\xff\xfe\r\n", "no plain text"),
        (b"MATCHSTATE:1:0:r30000:|2hAc\r\n", "a raise must be to 200 to 20000 chips"),
    ],
)
def test_a_bot_leaves_a_server_with_another_protocol(data, message):
    port = [threading.Event()]
    thread = threading.Thread(target=answered_with, args=(data, port))
    thread.start()
    assert port[0].wait(10)
    refused(message, visit, port[1], patience=0.3, error=TableError)
    thread.join()


def test_a_bot_leaves_a_table_with_other_stacks():
    """The policy's stacks are 20,000."""
    of = plan(hands=40, stack=10_000.0)
    betting = bot_sessions._betting(of.game)
    shover = bot_sessions.ServerPlayer("guest", PROGRAMS["always-all-in"](betting), of.game, rules(10_000.0))
    expected = pytest.raises(TableError, match=r"other stacks or blinds|or stacks differ")
    with dealing(of, [shover], ports=[0], clock=Clock(response=0.5)) as (port, result, _), expected:
        visit(port)
    assert "has not answered for 0.5 s" in str(result["error"])


def test_slow_players_end_a_match():
    of = plan(hands=4)
    for clock, message in (
        (Clock(response=0.2), "has not answered for 0.2 s"),
        (Clock(per_hand=0.05), "all that is left of its time"),
    ):
        with dealing(of, [scripted(PROGRAMS["always-call"], of)], ports=[0], clock=clock) as (port, result, _):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.sendall(b"VERSION:2.0.0\r\n")
        connection.close()
        assert message in str(result["error"])
    with dealing(of, ports=[0], wait=0.2) as (_, result, _):
        pass
    assert "has not connected within 0.2 s" in str(result["error"])


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    games = {"kuhn": KuhnGame(), "leduc": LeducGame(), "toy": TOY}
    return {name: write_random(folder / name, config) for name, config in games.items()}


def test_bad_input_gives_an_error_of_one_sentence(capsys, holdem, small, tmp_path):
    with listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        (tmp_path / "log").write_text("something else\n")
        damaged = tmp_path / "damaged"
        damaged.mkdir()
        (damaged / "meta.json").write_bytes((small["leduc"] / "meta.json").read_bytes())
        for message, arguments in {
            f"port {port} of 127.0.0.1 is in use": ("dealer", "--port", port),
            "no server answers at 127.0.0.1:": ("bot", "acpc", "holdem", "127.0.0.1", 1, "--patience", "0"),
            "servers and dealers play whole no-limit": ("bot", "acpc", small["leduc"], "127.0.0.1", port),
            "is damaged": ("bot", "acpc", damaged, "127.0.0.1", port),
            "is neither a policy, nor a run": ("bot", "acpc", tmp_path / "no", "127.0.0.1", port),
            "and the table has stacks of 500": ("dealer", "--stack", 500, "--with", "holdem"),
            "no antes and no fractions of chips": ("dealer", "--blinds", 0.5, 1),
            "hands = 0: at least 1 is needed": ("dealer", "--hands", 0),
            "duplicate deals need an even number": ("dealer", "--hands", 3, "--duplicate"),
            "write 2 names": ("dealer", "--names", "Ada"),
            "is no name of a player": ("dealer", "--names", "Ada,B|b"),
            "there are 2 players": ("dealer", *["--with", "random"] * 3),
            "is not an earlier output of the same kind": ("dealer", "--log", tmp_path / "log", "--port", 0),
            "an address such as": ("bot", "slumbot", "holdem", "--url", "nowhere"),
            "--key-file is a file that holds": ("bot", "gtowizard", "holdem", "--url", "https://x", "--key-file", "no"),
            "names no game": ("play", "random"),
            "resolve = 'flob' is not allowed": ("bot", "acpc", "holdem", "127.0.0.1", port, "--resolve", "flob"),
            "with resolve, leave them out": ("play", "holdem", "--resolve", "river", "--purify"),
            "hands are written of whole no-limit hold'em only": ("play", small["kuhn"], "--log", tmp_path / "x.phhs"),
            "are for policies and runs": ("bot", "acpc", "random", "127.0.0.1", port, "--purify"),
            "is neither a policy nor a run: give": ("play", tmp_path / "no"),
            "hands = 0: at least 1": ("play", "holdem", "--hands", 0),
        }.items():
            patience = ("--wait", "0") if arguments[0] == "dealer" else ()
            status, out, err = call(capsys, *arguments, *patience)
            expected = 1 if message == "is damaged" else 2
            assert status == expected and message in err and not out, (arguments, err)
            assert err.count("\n") == 1, err


def test_the_slumbot_command(capsys, holdem, tmp_path):
    double = Double(player("random", 2), 5)
    with http_server(double) as url:
        arguments = ("bot", "slumbot", "holdem", "--url", url, "--hands", 4, "--log", tmp_path / "hands.phhs")
        assert answer(capsys, *arguments)["hands"] == 4
    assert len(histories(tmp_path / "hands.phhs")) == 4


def test_the_gtowizard_command(capsys, holdem, tmp_path):
    """Play hands and print the server's AIVAT; warn of a readable key, and refuse a wrong one."""
    key, log = tmp_path / "key", tmp_path / "hands.log"
    key.write_text("k3y")
    key.chmod(0o644)
    arguments = ("bot", "gtowizard", "holdem", "--key-file", key, "--hands", 20)
    with http_server(Wizard(lambda number: player("random", number), 5)) as url:
        status, out, err = call(capsys, *arguments, "--url", url, "--log", log, "--json")
        assert status == 0 and "can be read by others" in err, err
        found = json.loads(out)
        assert found["hands"] == 20 and found["aivat_mean_mbb"] == pytest.approx(found["mean_mbb"] / 10)
        assert "k3y" not in log.read_text()
        status, out, _ = call(capsys, *arguments, "--url", url, "--log", log)
        assert status == 0 and "AIVAT by the server" in out
        key.write_text("other")
        status, out, err = call(capsys, *arguments, "--url", url)
        assert status == 2 and "Invalid API key" in err.splitlines()[-1] and "--key-file" in err.splitlines()[-1]
    assert sum(line.startswith("STATE:") for line in log.read_text().splitlines()) == 40


# --- a human player ---


def typed(monkeypatch, answers):
    """Answer prompts in this order, then end the input; return the list of prompts."""
    prompts, left = [], iter(answers)

    def ask(prompt, **_):
        prompts.append(prompt)
        try:
            return next(left)
        except StopIteration:
            raise commands.click.Abort from None

    monkeypatch.setattr(commands.click, "prompt", ask)
    return prompts


def test_a_person_plays_in_the_terminal(capsys, holdem, monkeypatch, tmp_path):
    log = tmp_path / "mine.phhs"
    rng = Random(4)
    answers = [
        rng.choice(["c", "", "r 3", "r pot", "r 50%", "a", "f", "?", "what", "r 9999", "r to 6", "x"])
        for _ in range(200)
    ]
    prompts = typed(monkeypatch, [*answers, "q"])
    status, out, _ = call(capsys, "play", "holdem", "--hands", 12, "--seed", 3, "--log", log)
    assert status == 0 and "You played 12 hands" in out and "(seed 3)" in out
    for text in ("you are the big blind", "you are the button and small blind", "BB", "is none of these: ? helps"):
        assert text in out
    assert "there is a bet: call with c or fold with f" in out
    assert "r 50%   half the pot" in out and "a raise is to" in out
    assert any("[f]old, [c]all" in prompt and "[r]aise to" in prompt for prompt in prompts)
    assert len(histories(log)) == 12
    log.write_text("letter")
    assert call(capsys, "play", "holdem", "--log", log).status == 2 and log.read_text() == "letter"
    typed(monkeypatch, ["c"])
    status, out, _ = call(capsys, "play", "holdem", "--seed", 3)
    assert status == 0 and "No hand was played to its end" in out
    typed(monkeypatch, [])
    status, out, _ = call(capsys, "play", "holdem", "--resolve", "turn")
    assert status == 0 and "From the turn on the policy re-solves its hands" in out, out


@pytest.mark.parametrize("name", ["kuhn", "leduc", "toy"])
def test_a_person_plays_small_games(capsys, small, monkeypatch, name):
    rng = Random(4)
    typed(monkeypatch, [rng.choice(["c", "f", "r", "r 3", "?"]) for _ in range(400)])
    status, out, _ = call(capsys, "play", small[name], "--hands", 20, "--seed", 1, "--purify")
    assert status == 0 and "You played" in out and "chips" in out and "BB" not in out
    assert "first to act" in out and "second to act" in out
