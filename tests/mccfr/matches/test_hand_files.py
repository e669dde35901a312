"""Hand history files: every format written and read back, files of other programs, refused hands.

Shows:

* Hands written to any hand history format are read back unchanged (test_hands_come_back_from_every_form)
* A damaged hand or a hand of six players is refused, and the other hands are read
  (test_a_hand_that_cannot_be_read_stops_no_other)
"""

import json

import pytest
from acpc import dealer, plan, rules
from pokerkit import HandHistory

from mccfr.config.game_tables import HoldemGame
from mccfr.games.translation import actions_of
from mccfr.matches.acpc import follow_actions
from mccfr.matches.acpc_log import LoggedHand
from mccfr.matches.hand_files import hand_files, read_hands
from mccfr.matches.hand_files.writing import write_hands

GAME = HoldemGame()
HANDS = 60
PLURIBUS = """variant = 'NT'
ante_trimming_status = true
antes = [0, 0, 0, 0, 0, 0]
blinds_or_straddles = [50, 100, 0, 0, 0, 0]
min_bet = 100
starting_stacks = [10000, 10000, 10000, 10000, 10000, 10000]
actions = ['d dh p1 TcQc', 'd dh p2 8s4c', 'd dh p3 9c3d', 'd dh p4 Ah4h', 'd dh p5 Th5s', 'd dh p6 6c7s', 'p3 f', \
'p4 cbr 210', 'p5 f', 'p6 f', 'p1 cc', 'p2 f', 'd db 7d5h9d', 'p1 cc', 'p4 cc', 'd db 7c', 'p1 cc', 'p4 cc', \
'd db Qh', 'p1 cbr 230', 'p4 f']
hand = 0
players = ['MrBlue', 'MrBlonde', 'MrWhite', 'MrPink', 'MrBrown', 'Pluribus']
finishing_stacks = [10310, 9900, 10000, 9790, 10000, 10000]
"""
SIX = (
    "STATE:154:fr250ffr1150fc/r2050c/r3750c/r6250f:KsQc|3c6s|Ah9c|9d9h|7sKc|8c3s/4s7d4d/4c/As:"
    "3850|-100|0|-3750|0|0:MrOrange|Pluribus|MrBlue|MrBlonde|MrWhite|MrPink"
)
"""Published hands of Pluribus (Brown & Sandholm 2019), in both forms in which they go round."""
ONLINE = """[15]
variant = 'NT'
ante_trimming_status = false
antes = [0, 0]
blinds_or_straddles = [5, 10]
min_bet = 10
starting_stacks = [1851.58, 1475.69]
actions = ['d dh p1 ????', 'd dh p2 ????', 'p2 cc', 'p1 cc', 'd db 5c7c7s', 'p1 cbr 20', 'p2 cc', 'd db 9d', \
'p1 cbr 45', 'p2 cc', 'd db Jh', 'p1 cc', 'p2 cbr 150', 'p1 cc', 'p2 sm 4cJc', 'p1 sm ????']
time = 00:04:54
players = ['one', 'two']
"""
"""Played for money in 2009, of the HandHQ part of the PHH data set."""


@pytest.fixture(scope="module")
def match():
    at = dealer(plan(hands=HANDS), ("random", "min-raise"))
    return [at.play(number) for number in range(HANDS)]


def found(path, game=GAME):
    return [(one.hand, one.why) for one in read_hands(path, game)]


def slumbots(hand):
    """Return a hand as Slumbot's server sends it to the big blind, with shown cards."""
    played, text, street = follow_actions(rules(), actions_of(hand.betting)), "", 0
    for state, action in zip(played.states, played.actions, strict=True):
        text += "/" * (state.street - street)
        street = state.street
        if action[0] == "r":
            text += f"b{int(float(action[1:]) - state.put_in_before)}"
        else:
            text += "k" if action == "c" and not state.facing else action
    cards = "".join(hand.board)
    return json.dumps(
        {
            "client_pos": 0,
            "hole_cards": [hand.holes[0][:2], hand.holes[0][2:]],
            "bot_hole_cards": [hand.holes[1][:2], hand.holes[1][2:]],
            "board": [cards[place : place + 2] for place in range(0, len(cards), 2)],
            "action": text,
            "winnings": hand.chips[0],
        }
    )


def test_hands_come_back_from_every_form(match, tmp_path):
    """PokerKit reads the PHH file, too; PokerStars' text has the other's cards where they were shown."""
    write_hands(tmp_path / "a.phhs", [hand.hand() for hand in match], GAME)
    write_hands(tmp_path / "a.stars.txt", [hand.hand() for hand in match], GAME)
    (tmp_path / "a.log").write_text(
        "# mccfr match {}\n" + "\n".join(hand.text() for hand in match) + "\nSCORE:1|2:A|B\n"
    )
    (tmp_path / "a.json").write_text("\n".join(map(slumbots, match)))
    assert [hand for hand, _ in found(tmp_path / "a.log")] == match
    assert [hand._replace(number=match[n].number) for n, (hand, _) in enumerate(found(tmp_path / "a.phhs"))] == match
    told = [hand for hand, _ in found(tmp_path / "a.json")]
    assert [hand[1:5] for hand in told] == [hand[1:5] for hand in match]
    hero, shown = match[0].names[0], 0
    for hand, (text, why) in zip(match, found(tmp_path / "a.stars.txt"), strict=True):
        assert not why and text.betting == hand.betting and text.board == hand.board and text.names == hand.names
        for each in (0, 1):
            showdown = hand.betting.rstrip("/")[-1] != "f"
            known = hand.names[each] == hero or showdown
            assert text.holes[each] == (hand.holes[each] if known else "")
            shown += known
        assert text.chips == hand.chips
    assert HANDS < shown < 2 * HANDS
    with (tmp_path / "a.phhs").open("rb") as file:
        assert len(list(HandHistory.load_all(file))) == HANDS
    assert [path.name for path in hand_files(tmp_path)] == ["a.json", "a.log", "a.phhs", "a.stars.txt"]


STARS = """PokerStars Hand #208958099944:  Hold'em No Limit ($0.25/$0.50 USD) - 2020/02/07 19:15:13 ET
Table 'Aaltje III' 2-max Seat #2 is the button
Seat 1: p: 0 ($100 in chips)
Seat 2: p1 ($101.50 in chips)
p1: posts small blind $0.25
p: 0: posts big blind $0.50
*** HOLE CARDS ***
Dealt to p: 0 [As Kh]
p1: raises $0.75 to $1.25
p: 0 said, "hello: folds"
p: 0: calls $0.75
*** FLOP *** [3h Kd Ts]
p: 0: checks
p1: bets $1.50
p: 0: raises $3 to $4.50
p1: folds
Uncalled bet ($3) returned to p: 0
p: 0 collected $5.50 from pot
*** SUMMARY ***
Total pot $5.50 | Rake $0
Seat 2: p1 (button) (small blind) folded on the Flop
"""


def test_what_others_wrote_is_read_in_the_chips_of_the_policy(tmp_path):
    """A hand of PokerStars' of another big blind, with a windows end of lines and names with colons; the published
    hands of the dealer of the ACPC."""
    (tmp_path / "stars").write_bytes(("\ufeff" + STARS).replace("\n", "\r\n").encode())
    ((hand, why),) = found(tmp_path / "stars")
    assert not why and hand == LoggedHand(
        0, "r250c/cr550r1150f", ("AsKh", ""), ("3hKdTs",), (550.0, -550.0), ("p: 0", "p1")
    )
    (tmp_path / "online.phhs").write_text(ONLINE)
    ((hand, why),) = found(tmp_path / "online.phhs", HoldemGame(stack=14756.9))
    assert not why and (hand.betting, hand.holes) == ("cc/r300c/r750c/cr2250c", ("", "4cJc")) and hand.chips is None
    (tmp_path / "log").write_text("STATE:7:cc/cc/cc/cc:7d3d|2hAc/5sKs7s/9s/6h:0|0:A|B\nSTATE:9:f:5c4s|As7d:50|-50:A|B")
    assert [why for _, why in found(tmp_path / "log")] == [
        "0 chips were won by the big blind there, and by cards and betting 100",
        "",
    ]


def test_a_hand_that_cannot_be_read_stops_no_other(match, tmp_path):
    good = match[0].text()
    bad = {
        SIX: "a hand of 6 players: hands of two are reviewed",
        good[:-4]: "is not STATE",
        "STATE:1:r300:5c4s|As7d:50|-50:A|B": "is not over",
        "STATE:1:r150f:5c4s|As7d:50|-50:A|B": "a raise is to 200 at least",
        "STATE:1:r300f:5c4s|As5c:-100|100:A|B": "a card twice",
        "STATE:1:r300c/f:5c4s|As7d:50|-50:A|B": "nothing to fold to",
        "STATE:1:r300c/r600f:5c4s|As7d:300|-300:A|B": "is not that of the betting",
    }
    (tmp_path / "log").write_text("\n".join([good, *bad, good]))
    told = found(tmp_path / "log")
    assert told[0][0] is not None and told[-1][0] is not None and len(told) == len(bad) + 2
    for (hand, why), words in zip(told[1:-1], bad.values(), strict=True):
        assert hand is None and words in why and "\n" not in why
    (tmp_path / "six.phh").write_text(PLURIBUS)
    assert found(tmp_path / "six.phh") == [(None, "a hand of 6 players: hands of two are reviewed")]
    other = HoldemGame(stack=10_000)
    write_hands(tmp_path / "a.phhs", [match[0].hand()], GAME)
    ((_, why),) = found(tmp_path / "a.phhs", other)
    assert "stacks of 20000" in why and "the policy is for stacks of 10000" in why
    (tmp_path / "letter").write_text("dear all")
    ((_, why),) = found(tmp_path / "letter")
    assert "begins none of the forms" in why
    with pytest.raises(FileNotFoundError, match="no file of hands"):
        hand_files(tmp_path / "nothing")
