"""Logs of resumed matches: replayed when opened, synced to disk after every hand."""

import re
from random import Random

import pytest
from acpc import dealer, plan, rules
from refusals import refusals, refused

from mccfr.matches import acpc_log, bot_sessions
from mccfr.matches.acpc import TableError
from mccfr.matches.acpc_log import LoggedHand, MatchLog, bot_replay, read_hand
from mccfr.matches.bot_sessions import ServerPlayer
from mccfr.matches.dealer import replay_of, score_text, scores
from storage import durable

HANDS, DAMAGES = 40, 200
PLAN = plan(hands=HANDS, duplicate=True)
NAMES = ("Ada", "Bob")


def opened(path, of=PLAN):
    return MatchLog(path, of.fields(), replay_of(of))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the path of the log of a finished match."""
    path = tmp_path_factory.mktemp("log") / "whole.log"
    log, at = opened(path), dealer(PLAN, ("random", "min-raise"))
    for number in range(HANDS):
        log.add(at.play(number))
    log.close_with(score_text(PLAN, scores(PLAN, log.hands)))
    log.close()
    return path


def flip(lines, random):
    """Return the lines with one digit replaced by another."""
    which = random.choice([which for which, line in enumerate(lines) if re.search(rb"\d", line)])
    places = [match.start() for match in re.finditer(rb"\d", lines[which])]
    at = random.choice(places)
    digit = random.choice([each for each in b"0123456789" if each != lines[which][at]])
    return [*lines[:which], lines[which][:at] + bytes([digit]) + lines[which][at + 1 :], *lines[which + 1 :]]


def gone(lines, random):
    which = random.randrange(len(lines))
    return lines[:which] + lines[which + 1 :]


def twice(lines, random):
    which = random.randrange(len(lines))
    return [*lines[: which + 1], *lines[which:]]


def swapped(lines, random):
    which = random.randrange(1, len(lines) - 1)
    return [*lines[:which], lines[which + 1], lines[which], *lines[which + 2 :]]


def forged(lines, random):
    """Return the lines with other chips for one hand, and the score of these chips."""
    which = random.randrange(1, len(lines) - 1)
    hands = [read_hand(line.decode()) for line in lines[1:-1]]
    more = random.choice((-1, 1, 100, 20_000))
    first = hands[which - 1].chips[0] + more
    hands[which - 1] = hands[which - 1]._replace(chips=(first, -first))
    return [lines[0], *(hand.text().encode() for hand in hands), score_text(PLAN, scores(PLAN, hands)).encode()]


def reopened(path, open_log=opened):
    """Return the hands of a log, or None if it is refused with an error that names file and line."""
    before = path.read_bytes()
    try:
        log = open_log(path)
    except ValueError as error:
        assert path.read_bytes() == before and str(path) in str(error)
        assert re.search(r", line \d+: ", str(error)) or "is of another match" in str(error)
        return None
    except FileExistsError:  # no header
        assert path.read_bytes() == before
        return None
    log.close()
    assert path.read_bytes() == before
    return log.hands


def count_refused(log, count, damage, path, opening):
    """Return how many damaged copies are refused; the others must give the same chips in each hand."""
    random, found, lines = Random(damage.__name__), 0, log.read_bytes().splitlines()
    won = [hand.chips for hand in reopened(log, opening)]
    for _ in range(count):
        path.write_bytes(b"\n".join(damage(lines, random)) + b"\n")
        hands = reopened(path, opening)
        found += hands is None
        assert hands is None or [hand.chips for hand in hands] == won
    return found


@pytest.mark.parametrize("damage", [flip, gone, twice, swapped, forged])
def test_a_damaged_log_is_refused_or_gives_the_same_chips(whole, tmp_path, damage):
    """Damage 200 copies in all."""
    found = count_refused(whole, DAMAGES // 5, damage, tmp_path / "damaged.log", opened)
    assert found >= DAMAGES // 5 - (10 if damage is flip else 4)


def test_a_log_without_its_last_lines_is_resumed_to_the_same_score(whole, tmp_path):
    path = tmp_path / "short.log"
    for kept in (1, 2, 25, HANDS + 1):
        path.write_bytes(b"".join(whole.read_bytes().splitlines(keepends=True)[:kept]) + b"STATE:9")
        assert len(reopened(path)) == kept - 1
    log = opened(path)
    assert len(log.hands) == HANDS and not log.score
    log.close_with(score_text(PLAN, scores(PLAN, log.hands)))
    log.close()
    assert path.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("tail", [b"my notes", b"\0\0x", b"# mine", b"SC0"])
def test_an_unknown_last_line_is_refused_and_left_unchanged(whole, tmp_path, tail):
    path = tmp_path / "whole.log"
    path.write_bytes(whole.read_bytes() + tail)
    assert reopened(path) is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("STATE:7:", "STATE:07:", "contradicts the deal"),
        ("STATE:7:", "STATE:8:", "hand 8 stands in the place of hand 7"),
        (":Ada|Bob", ":Bob|Ada", "contradicts the deal"),
        ("STATE:", "# STATE:", "is not STATE:"),
        ("SCORE:", "SCORE:1", "is not the score of 40 hands out of 40"),
        ("SCORE:", f"STATE:7:{'c' * 5000}:", ""),
        ("STATE:7:", f"STATE:7:r{'9' * 5000}", ""),
        ("STATE:7:", f"STATE:{'7' * 5000}:", ""),
        ("STATE:7:", "STATE:7:r", ""),
        ("STATE:7:", "STATE:7:\xff", ""),
    ],
)
def test_the_error_names_the_line_and_what_is_wrong(whole, tmp_path, old, new, message):
    path = tmp_path / "wrong.log"
    text = whole.read_text()
    line = text[: text.index(old)].count("\n") + 1
    path.write_bytes(text.replace(old, new, 1).encode("latin-1"))
    refused(rf"wrong\.log, line {line}: .*{re.escape(message)}", opened, path, error=TableError)


def test_a_log_of_another_match_is_refused(whole):
    refused("is of another match: hands is 40 there and 42 here", opened, whole, plan(hands=42, duplicate=True))


def header_of(log):
    """Return the content of a new log, which is its header, and close the log."""
    head = log.path.read_bytes()
    log.close()
    return head


def test_an_incomplete_header_is_rewritten_unless_it_is_too_short_to_recognise(tmp_path):
    path, head = tmp_path / "log", header_of(opened(tmp_path / "whole"))
    assert list(tmp_path.iterdir()) == [], "a log without a hand is removed"
    for length in (0, 14, 30, len(head) - 1):
        path.write_bytes(head[:length])
        opened(path).close()
        assert path.read_bytes() == head
    path.write_bytes(head[:5])
    refused("not an earlier output", opened, path, error=FileExistsError)


# --- bots ---


def bot_log(path):
    return MatchLog(path, {"bot": "Ada"}, bot_replay(rules(), NAMES))


@pytest.fixture(scope="module")
def bot_log_file(whole, tmp_path_factory):
    """Return the path of a bot's log with the match and the beginning of another match."""
    path = tmp_path_factory.mktemp("diary") / "bot.log"
    hands = [read_hand(line) for line in whole.read_text().splitlines() if line.startswith("STATE:")]
    recorder = bot_sessions._HandRecorder.__new__(bot_sessions._HandRecorder)
    recorder._log = bot_log(path)
    for hand in [*hands, *hands[3:6]]:
        recorder._write(hand)
    recorder._log.close()
    return path


def test_the_log_of_a_bot_holds_several_matches(bot_log_file, whole):
    text = bot_log_file.read_text()
    assert text.count(acpc_log._ANOTHER) == 1 and len(reopened(bot_log_file, bot_log)) == HANDS + 3
    assert text.splitlines()[1 : HANDS + 1] == whole.read_text().splitlines()[1:-1]


@pytest.mark.parametrize("damage", [flip, twice, swapped])
def test_a_damaged_log_of_a_bot_is_refused_or_gives_the_same_chips(bot_log_file, tmp_path, damage):
    """Damage that no reader can notice is left out, such as skipped hand numbers."""
    assert count_refused(bot_log_file, 40, damage, tmp_path / "damaged.log", bot_log) >= (20 if damage is flip else 36)


def read_bot_log(line, tmp_path):
    path = tmp_path / "bot.log"
    path.write_bytes(header_of(bot_log(path)) + line.text().encode() + b"\n")
    raise TableError(refused("line 2: ", bot_log, path, error=TableError))


test_impossible_hands_in_the_log_of_a_bot_are_refused = refusals(
    ("is not over", LoggedHand(1, "r300", ("", ""), (), None, NAMES)),
    ("a raise must be to", LoggedHand(1, "r150f", ("", ""), (), None, NAMES)),
    ("what was won", LoggedHand(1, "r300f", ("", ""), (), (-300.0, 300.0), NAMES)),
    ("what was won", LoggedHand(1, "r300f", ("", ""), (), (-100.0, 101.0), NAMES)),
    ("not as it is written", LoggedHand(1, "r300f", ("", ""), (), None, ("Ada", "Eve"))),
    ("too short", LoggedHand(1, "cc/cc/cc/r200f", ("", ""), ("5c5d5h",), None, NAMES)),
    ("what was won", LoggedHand(1, "r20000c///", ("", "AsKd"), ("5c5d5h", "6c", "7c"), (5.0, -5.0), NAMES)),
    call=read_bot_log,
    error=TableError,
)


# --- the disk ---


def certain(operations, path):
    """Return True if a file's lines and name survive a power cut after these operations."""
    mine = [operation.kind for operation in operations if operation.path == path]
    writes = [place for place, operation in enumerate(operations) if operation.path == path]
    names = [place for place, o in enumerate(operations) if o.kind == "fsync_dir" and o.path == path.parent]
    return bool(mine) and mine[-1] == "fsync_file" and bool(names) and names[-1] > writes[0]


def test_directory_and_lines_are_synced_after_each_hand(tmp_path):
    path, at = tmp_path / "match.log", dealer(PLAN, ("always-call", "always-call"))
    with durable.recording() as operations:
        log = opened(path)
        assert certain(operations, path)
        for number in range(3):
            log.add(at.play(number))
            assert certain(operations, path) and sum(o.kind == "append" for o in operations) == 2 + number
        log.close()
    with durable.recording() as operations:  # an earlier process may have been killed before its sync
        opened(path).close()
        assert {operation.kind for operation in operations} == {"fsync_file", "fsync_dir"}


@pytest.mark.parametrize("name", ["fsync_file", "fsync_dir"])
def test_a_planted_missing_sync_is_noticed(tmp_path, monkeypatch, name):
    monkeypatch.setattr(durable, name, lambda *_: None)
    with durable.recording() as operations:
        opened(tmp_path / "match.log").close()
    assert not certain(operations, tmp_path / "match.log")


def test_a_full_disk_stops_the_bot_and_leaves_the_log_unchanged(tmp_path, monkeypatch):
    """The log does not contain the hand and is unchanged."""
    path = tmp_path / "bot.log"
    recorder = bot_sessions._HandRecorder(ServerPlayer("Ada", None, PLAN.game, rules()), path, "Bob")
    hand = bot_sessions.FinishedHand(0, 0, "r300f", ("AsKd", ""), (), (-100.0, 100.0))
    recorder.add(hand)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(durable, "fsync_file", full)
        with pytest.raises(RuntimeError, match=r"bot\.log: No space left on device: the match ends here"):
            recorder.add(hand._replace(number=1))
    recorder._log.close()
    assert path.read_bytes() == before and len(recorder._log.hands) == 1
    recorder = bot_sessions._HandRecorder(ServerPlayer("Ada", None, PLAN.game, rules()), path, "Bob")
    recorder.add(hand._replace(number=1))
    recorder.close()
    assert path.read_text().count("STATE:") == 2
