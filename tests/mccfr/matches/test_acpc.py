"""The ACPC protocol: the messages of a real dealer's transcript, and invalid messages.

Shows:

* The client and the dealer write every message of a real dealer's transcript
  (test_client_sends_every_answer_of_the_transcript, test_dealer_sends_the_same_messages_as_a_real_dealer)
* A player whose connection breaks during a hand comes back and loses no hand
  (test_a_player_reconnects_after_a_lost_connection)
"""

from random import Random

import pytest
from acpc import dealer, plan, rules, session
from places import DATA
from random_policy import policy
from refusals import refusals, refused

from mccfr.matches.acpc import TableError, follow_actions, follow_line, read_state, won_chips
from mccfr.matches.acpc_log import LoggedHand, read_hand
from mccfr.matches.acpc_session import AcpcSession
from mccfr.matches.dealer import LocalSeat
from mccfr.play.player import Program
from mccfr.play.policy_seat import Seat

TRANSCRIPT = (DATA / "acpc_transcript.txt").read_text().splitlines()


def matches():
    """Return the two matches of the transcript: logged hands, and messages as (to player, seat, line)."""
    found = []
    for line in TRANSCRIPT:
        if line.startswith(("# PART 1", "# PART 3")):
            found.append(([], []))
        elif line.startswith("STATE:"):
            found[-1][0].append(line)
        elif line.startswith(("TO ", "FROM ")):
            kind, seat, text = line.split(" ", 2)
            found[-1][1].append((kind == "TO", int(seat), text))
    return found


class Scripted(Program):
    """Plays the actions of `script` in order."""

    script = ()

    def act(self, random):
        return self.script.pop(0)


@pytest.mark.parametrize("match", [0, 1])
@pytest.mark.parametrize("seat", [1, 2])
def test_client_sends_every_answer_of_the_transcript(match, seat):
    """Feed the client a real dealer's lines: its answers and each hand's chips equal the transcript."""
    logged, messages = matches()[match]
    own = [(to, text) for to, which, text in messages if which == seat]
    answers = [text for to, text in own if not to]
    one, ended = Scripted(Seat(policy()).betting), []
    one.script = [text.rpartition(":")[2] for text in answers]
    client, expected = AcpcSession(one, rules(), ended.append), list(answers)
    for to, text in own:
        if to and (answer := client.answer(text.encode() + b"\r\n")) is not None:
            assert answer == expected.pop(0)
    assert not expected and not one.script and len(answers) > 20
    hands = [read_hand(line) for line in logged]
    assert logged == [hand.text() for hand in hands]
    for hand, line in zip(ended, hands, strict=True):
        assert (hand.number, hand.betting, hand.chips) == (line.number, line.betting, line.chips)
        known = [(seen, shown) for seen, shown in zip(hand.holes, line.holes, strict=True) if seen]
        assert known and all(seen == shown for seen, shown in known)


def test_dealer_sends_the_same_messages_as_a_real_dealer():
    """Deal the transcript's hands again: the messages to both players are the same."""
    for logged, messages in matches():
        for number, line in enumerate(logged):
            hand = read_hand(line)
            state, said = "", [text for to, _, text in messages if to and f":{number}:" in text[12:16]]
            ours = []
            actions = follow_line(rules(), hand.betting).actions
            for count in range(len(actions) + 1):
                game = follow_actions(rules(), actions[:count])
                over, board = isinstance(game.state, int), hand.board[: game.text.count("/")]
                for position in (0, 1):
                    holes = tuple(
                        hole if position == which or (over and game.actions[-1] == "c") else ""
                        for which, hole in enumerate(hand.holes)
                    )
                    there = read_state(said[0])._replace(position=position, betting=game.text, holes=holes, board=board)
                    ours.append(there.text())
            assert sorted(ours) == sorted(said), state
            assert won_chips(rules(), follow_actions(rules(), actions), hand.holes, hand.board) == hand.chips


# --- invalid and repeated messages (test_fuzz.py has random ones) ---


def test_comments_get_no_answer_and_repeated_lines_the_same_one():
    client = session("policy")
    assert client.answer(b"# hello\r\n") is client.answer(b"; hello\r\n") is client.answer(b"\r\n") is None
    first = client.answer(b"MATCHSTATE:1:0::|2hAc\r\n")
    assert first == client.answer(b"MATCHSTATE:1:0::|2hAc\r\n"), "a repeated line has the same answer"


def test_a_hand_restarted_after_a_lost_connection_gets_the_same_answers():
    """A dealer that resumes from its log restarts the hand. Without a lost connection, that is an error."""
    client, lines = session("always-call"), [b"MATCHSTATE:1:7::|2hAc", b"MATCHSTATE:1:7:cr300:|2hAc"]
    answers = [client.answer(line) for line in lines]
    assert [answer.rpartition(":")[2] for answer in answers] == ["c", "c"]
    refused("has changed an action", session_after(lines).answer, b"MATCHSTATE:1:7:r300:|2hAc", error=TableError)
    client.reconnected()
    assert [client.answer(line) for line in lines] == answers


def session_after(lines):
    """Return a session that has answered some lines."""
    client = session("always-call")
    for line in lines:
        client.answer(line)
    return client


def answer_lines(lines):
    client = session("always-call")
    for line in lines:
        client.answer(line.encode())


test_refusals = refusals(
    ("is not MATCHSTATE", ["HELLO"]),
    ("does not show the player's own cards", ["MATCHSTATE:0:0::|2hAc"]),
    ("should be 'r20000c///': streets end elsewhere, or stacks differ", ["MATCHSTATE:1:0:r20000c:|2hAc"]),
    ("a raise must be to 200 to 20000 chips", ["MATCHSTATE:1:0:r30000:|2hAc"]),
    ("streets end elsewhere, or stacks differ", ["MATCHSTATE:1:0:r10000c///:3d4d|2hAc/5c5d5h/6c/7c"]),
    ("not written", ["MATCHSTATE:1:0:cc/:|2hAc/5sKs"]),
    ("a card twice", ["MATCHSTATE:1:0:cc/:|2hAc/5sKs2h"]),
    ("not that of its streets", ["MATCHSTATE:1:0:cc/:|2hAc"]),
    ("hand 2 comes after hand 3: expected 3 or a later", ["MATCHSTATE:1:3:r300:|2hAc", "MATCHSTATE:1:2::|2hAc"]),
    ("dealt again", ["MATCHSTATE:0:3:r300:2hAc|", "MATCHSTATE:0:3:r300r900:2hAd|"]),
    ("has changed an action", ["MATCHSTATE:0:3:r300:2hAc|", "MATCHSTATE:0:3:r400:2hAc|"]),
    (".", ["MATCHSTATE:0:0:cc/:2hAc|/5sKs7s", "MATCHSTATE:0:0:cc/cc/:2hAc|/5sKs7d/2d"]),
    call=answer_lines,
    error=TableError,
)


# --- the dealer of this project ---


class IllegalSeat(LocalSeat):
    """A player who sends illegal actions."""

    sent = ("f", "r1", "r123456", "r", "b300", "x", "r-5", "", "r1e3")

    def __init__(self, rng):
        self.rng = rng

    def tell(self, line):
        pass

    def ask(self, line, seconds):
        return self.rng.choice([f"{line}:{self.rng.choice(self.sent)}", "nonsense", line.replace(":", ";")])


def test_illegal_actions_become_the_nearest_legal_ones_and_invalid_lines_are_ignored():
    warned, of = [], plan(hands=30)
    at = dealer(of, warned=warned.append)
    at._seats = [LocalSeat(session("always-call")), IllegalSeat(Random(3))]
    hands = [at.play(number) for number in range(of.hands)]
    assert at.changed > 20 and any("is ignored" in text for text in warned)
    assert any("r123456' is not legal" in text and "becomes r20000" in text for text in warned)
    assert all(follow_line(rules(), hand.betting) for hand in hands)


def test_no_more_than_63_actions_fit_on_a_street():
    class Smallest(Program):
        def act(self, random):
            return (self.raises((0.0,)) or ["c"])[0]

    warned, of = [], plan(hands=2)
    at = dealer(of, warned=warned.append)
    at._seats = [LocalSeat(AcpcSession(Smallest(Seat(policy()).betting), rules())) for _ in range(2)]
    refused("has changed an action", at.play, 0, error=TableError)
    assert len(warned) == 1 and "is not legal" in warned[0] and warned[0].endswith("becomes c")


# --- logs ---


def test_log_lines_keep_hidden_cards_and_unknown_winnings():
    hand = LoggedHand(4, "r300f", ("", "AsKd"), (), (-100.0, 100.0), ("Ada", "Bob"))
    assert read_hand(hand.text()) == hand and hand.hand().hole == ("????", "AsKd")
    unknown = hand._replace(chips=None)
    assert read_hand(unknown.text()) == unknown
    for text in ("STATE:1", hand.text() + "x:", hand.text().replace("AsKd", "AsAs")):
        with pytest.raises(TableError):
            read_hand(text)
