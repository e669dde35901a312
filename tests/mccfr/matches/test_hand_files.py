"""Hand history files: every format written and read back, files of other programs, refused hands.

Shows:

* Hands of any format are read back unchanged (test_hands_are_read_back_from_every_format)
* Damaged hands are refused, others read (test_an_unreadable_hand_does_not_stop_the_others)
* Hands of three to six players are read; random ones have PokerKit's payoffs (test_hands_of_six_players_are_read,
  test_random_hands_of_three_to_six_players_pay_as_in_pokerkit)
* Hands of seven sites are read with their stakes (test_each_sites_text_gives_the_same_hand,
  test_stakes_are_read_from_the_hand)
* A pot, rake or winner that contradicts the hand is refused with both figures
  (test_an_impossible_pot_is_refused_with_both_amounts,
  planted: test_an_impossible_side_pot_is_refused)
"""

import json
import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from acpc import dealer, plan, player, rules
from places import DATA
from pokerkit import HandHistory, NoLimitTexasHoldem
from pokerkit_table import AUTOMATIONS, PokerKitTable, histories
from slumbot_double import Double

from mccfr.config.game_tables import HoldemGame
from mccfr.games.translation import actions_of
from mccfr.matches.acpc import follow_actions
from mccfr.matches.acpc_log import LoggedHand
from mccfr.matches.hand_files import hand_files, read_hands
from mccfr.matches.hand_files.site_texts import chips_of
from mccfr.matches.hand_files.writing import write_hands

GAME = HoldemGame()
HANDS = 60
PLURIBUS, ONLINE, STARS, SIXMAX = (
    (DATA / "hands" / name).read_text("utf-8")
    for name in ("pluribus.phh", "online.phhs", "pokerstars.txt", "sixmax.txt")
)
SIX = (
    "STATE:154:fr250ffr1150fc/r2050c/r3750c/r6250f:KsQc|3c6s|Ah9c|9d9h|7sKc|8c3s/4s7d4d/4c/As:"
    "3850|-100|0|-3750|0|0:MrOrange|Pluribus|MrBlue|MrBlonde|MrWhite|MrPink"
)
"""A published hand of Pluribus (Brown & Sandholm 2019) in the ACPC's log format."""


@pytest.fixture(scope="module")
def match():
    at = dealer(plan(hands=HANDS), ("random", "min-raise"))
    return [at.play(number) for number in range(HANDS)]


def found(path, game=GAME):
    return [(one.hand and one.hand.hand, one.why) for one in read_hands(path, game)]


def text_hand(tmp_path, text):
    """Return the hand of a text, or the reason against it."""
    (tmp_path / "hand.txt").write_text(text, encoding="utf-8")
    (one,) = read_hands(tmp_path / "hand.txt", GAME)
    return one.hand or one.why


def slumbots(hand):
    """Return a hand as Slumbot's server sends it to the big blind, with shown cards."""
    double, cards = Double(None), "".join(hand.board)
    double.pos, double.holes, double.actions = 0, hand.holes, actions_of(hand.betting)
    double.board = [cards[place : place + 2] for place in range(0, len(cards), 2)]
    double.game = follow_actions(rules(), double.actions)
    return json.dumps(double._answer())


def test_hands_are_read_back_from_every_format(match, tmp_path):
    """PokerKit reads the PHH file, too. PokerStars' text has the opponent's cards only if shown."""
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
        cents = re.sub(r"\d+", lambda dollars: f"{dollars[0]}00", hand.betting)
        assert not why and (text.betting, text.board, text.names) == (cents, hand.board, hand.names)
        for each in (0, 1):
            showdown = hand.betting.rstrip("/")[-1] != "f"
            known = hand.names[each] == hero or showdown
            assert text.holes[each] == (hand.holes[each] if known else "")
            shown += known
        assert text.chips == (100 * hand.chips[0], 100 * hand.chips[1])
    assert HANDS < shown < 2 * HANDS
    assert len(histories(tmp_path / "a.phhs")) == HANDS
    assert [path.name for path in hand_files(tmp_path)] == ["a.json", "a.log", "a.phhs", "a.stars.txt"]


def test_the_hero_of_a_text_is_the_player_whose_cards_are_known(match, tmp_path):
    hands, hero = [hand.hand() for hand in match if hand.betting.endswith("f")], match[0].names[1]
    for number, hand in enumerate(hands):
        hole = tuple(cards if name == hero else "????" for name, cards in zip(hand.names, hand.hole, strict=True))
        hands[number] = replace(hand, hole=hole if number else ("????", "????"))
    hands[1] = replace(hands[1], hole=tuple(reversed(hands[1].hole)))  # once the other player's cards are known
    write_hands(tmp_path / "a.stars.txt", hands, GAME)
    for (text, why), hand in zip(found(tmp_path / "a.stars.txt"), hands, strict=True):
        shown = [cards if name == hero else "????" for name, cards in zip(hand.names, hand.hole, strict=True)]
        assert not why and text.holes == tuple("" if cards == "????" else cards for cards in shown)


def test_files_of_other_programs_are_read_in_their_own_chips(tmp_path):
    """Read a hand of PokerStars in three encodings, one of a PHH file, and two of an ACPC dealer.

    The PokerStars hand has Windows line ends and names with colons. The smaller of the two stacks counts."""
    written = STARS.replace("\n", "\r\n")
    for data in (written.encode("utf-8-sig"), written.encode("utf-16"), written.encode("utf-16-le")):
        (tmp_path / "stars").write_bytes(data)
        (one,) = read_hands(tmp_path / "stars", GAME)
        assert one.where.endswith("stars, line 1, hand 208958099944") and not one.why
        hand, stakes = one.hand
        assert hand == LoggedHand(
            208958099944, "r125c/cr275r575f", ("AsKh", ""), ("3hKdTs",), (275.0, -275.0), ("p: 0", "p1")
        )
        assert (stakes.depth, stakes.unit, stakes.currency, stakes.tournament) == (200, 100, "$", False)
    (tmp_path / "online.phhs").write_text(ONLINE)
    ((hand, why),) = found(tmp_path / "online.phhs")
    assert not why and (hand.betting, hand.holes) == ("cc/r3000c/r7500c/cr22500c", ("", "4cJc")) and hand.chips is None
    (tmp_path / "log").write_text("STATE:7:cc/cc/cc/cc:7d3d|2hAc/5sKs7s/9s/6h:0|0:A|B\nSTATE:9:f:5c4s|As7d:50|-50:A|B")
    reasons = [why for _, why in found(tmp_path / "log")]
    assert reasons == ["0 chips were won by BB there, and by cards and betting 100", ""]


def test_an_unreadable_hand_does_not_stop_the_others(match, tmp_path):
    good = match[0].text()
    bad = {
        SIX: "a hand of 6 players: no policy that is given has as many",
        good[:-4]: "is not STATE",
        "STATE:1:r300:5c4s|As7d:50|-50:A|B": "is not over",
        "STATE:1:r150f:5c4s|As7d:50|-50:A|B": "a raise must be to 200",
        "STATE:1:r300f:5c4s|As5c:-100|100:A|B": "a card twice",
        "STATE:1:r300c/f:5c4s|As7d:50|-50:A|B": "nothing to fold to",
        "STATE:1:r300c/r600f:5c4s|As7d:300|-300:A|B": "is not that of the betting",
    }
    (tmp_path / "log").write_text("\n".join([good, *bad, good]))
    told = found(tmp_path / "log")
    assert told[0][0] is not None and told[-1][0] is not None and len(told) == len(bad) + 2
    for (hand, why), words in zip(told[1:-1], bad.values(), strict=True):
        assert hand is None and words in why and "\n" not in why
    seven = PLURIBUS.replace("0, 0]", "0, 0, 0]").replace("10000]", "10000, 10000]")
    (tmp_path / "seven.phh").write_text(seven)
    assert found(tmp_path / "seven.phh") == [(None, "a hand of 7 players: the rules know two to 6")]
    (tmp_path / "blinds.phh").write_text(PLURIBUS.replace("[50, 100,", "[100, 50,"))
    refusal = "blinds_or_straddles begins with 100, 50: the small blind comes first, the big blind next"
    assert found(tmp_path / "blinds.phh") == [(None, refusal)]
    (tmp_path / "letter").write_text("dear all")
    ((_, why),) = found(tmp_path / "letter")
    assert "begins none of the forms" in why
    with pytest.raises(FileNotFoundError, match="no file of hands"):
        hand_files(tmp_path / "nothing")


def test_slumbots_hands_are_read_from_saved_answers(tmp_path):
    """Read the test server's last answer to each hand: chips follow from cards and betting in both seats."""
    double, kept = Double(player("random"), seed=2), []
    for _ in range(30):
        answer = double.post("new_hand", {"token": double.token})
        while answer.get("winnings") is None:
            answer = double.post("act", {"incr": "k" if not double.game.state.facing else "c", "token": double.token})
        kept.append(json.dumps(answer))
    (tmp_path / "hands.json").write_text("\n".join(kept))
    told = found(tmp_path / "hands.json")
    assert len(told) == 30 and not any(why for _, why in told)
    assert {hand.names for hand, _ in told} == {("client", "slumbot"), ("slumbot", "client")}
    assert any(all(hand.holes) for hand, _ in told)


SITES = {path.stem: path.read_text("utf-8") for path in sorted((DATA / "hands/sites").iterdir())}


@pytest.mark.parametrize("site", SITES)
def test_each_sites_text_gives_the_same_hand(tmp_path, site):
    """Numbers have the formats of several languages; the button has 29.2 big blinds, the opponent more."""
    hand, stakes = text_hand(tmp_path, SITES[site])
    assert (hand.betting, hand.board, hand.number) == ("r250c/r450r2920f", ("7c9h8d",), 7)
    assert hand.chips == (-450, 450) and stakes.depth == 29.2 and stakes.unit == 100
    assert hand.holes == (("2c3c", "Ah4c") if site == "Bovada" else ("", ""))


@pytest.mark.parametrize("site", SITES)
def test_each_sites_hands_of_three_players_are_read(tmp_path, site):
    """A third player posts the small blind and folds.

    Two sites write the amount that a raise adds, the others the amount that it raises to."""
    text = re.sub(r"(?m)^.*(collected|wins|Hand Result|Total (?:Pot|pot)(?!:)|Rake).*\n?", "", SITES[site])
    text = re.sub(r"(?m)^Seat \d+: (Bob|Dealer \[ME\])(.*)$", r"Seat 8: \1\2\nSeat 9: Cid\2", text)
    text = re.sub(r"(?m)^Seat \d: (Ada|Big Blind)", r"Seat 2: \1", text)
    text = re.sub(r"(?m)^(Bob|Dealer \[ME\])(.*[Ss]mall [Bb]lind)", r"Cid\2", text)
    folds = re.search(r"(?m)^(?:Ada|Big Blind)( ?:? ?[fF]olds)$", text)[1]
    text = re.sub(r"(?m)^((?:Bob|Dealer \[ME\]).*[Rr]aises.*)$", rf"\1\nCid{folds}", text, count=1)
    hand, stakes = text_hand(tmp_path, text)
    adds = site in ("888poker", "PartyPoker")
    assert hand.betting == ("r200fc/r400r2870f" if adds else "r250fc/r450r2920f")
    assert hand.chips == ((-50, -400, 450) if adds else (-50, -450, 500)) and stakes.depth == 29.2
    assert hand.names == (("Cid", "Big Blind", "Dealer [ME]") if site == "Bovada" else ("Cid", "Ada", "Bob"))


@pytest.mark.parametrize(
    ("text", "chips"),
    [
        ("1,234.50", "1234.5"),
        ("1.234,50", "1234.5"),
        ("1 234,50", "1234.5"),
        ("1\u202f234", "1234"),
        ("1'234'567.8", "1234567.8"),
        ("1,234", "1234"),
        ("0.125", "0.125"),
        ("12,5", "12.5"),
    ],
)
def test_numbers_of_several_languages(text, chips):
    assert chips_of(text) == Decimal(chips)


def test_stakes_are_read_from_the_hand(tmp_path):
    """Blinds of 0.40 and 1, a big-blind ante, an all-in blind, a straddle and players who sit out."""
    blinds = STARS.replace("0.25", "0.20").replace("posts small blind $0.20", "posts small blind $0.20")
    _, stakes = text_hand(tmp_path, blinds)
    assert (stakes.rules.put_in, stakes.big_blind) == ((50, 20), 50)
    ante = STARS.replace("*** HOLE", "p: 0: posts the ante $0.50\n*** HOLE").replace("$5.50", "$6")
    hand, stakes = text_hand(tmp_path, ante)
    assert stakes.rules.put_in == (75, 50) and stakes.rules.put_in_before == 25 and stakes.depth == 199.5
    assert hand.betting == "r150c/cr300r600f"
    assert hand.chips[0] + stakes.offset == 275  # half of the ante is the other's
    short = STARS[: STARS.index("Dealt")].replace("($100 in", "($0.40 in").replace("blind $0.50\n*", "blind $0.40\n*")
    hand, stakes = text_hand(tmp_path, short + "p1: folds\np: 0 collected $0.65 from pot\n*** SUMMARY ***\n")
    assert hand.betting == "f" and stakes.depth == 0.8 and stakes.rules.put_in == (40, 25)
    straddle = "[1]\n" + ONLINE[5:].replace("[5, 10]", "[20, 10]").replace(
        "'p2 cc', 'p1 cc', 'd db 5", "'p1 cc', 'p2 cc', 'd db 5"
    )
    (tmp_path / "straddle.phhs").write_text(straddle)
    (one,) = read_hands(tmp_path / "straddle.phhs", GAME)
    assert one.hand.stakes.rules.put_in == (1000, 2000) and one.hand.hand.betting.startswith("cc/r4000c")
    raised = STARS.replace("*** HOLE", "p: 0: posts straddle $1\n*** HOLE").replace("$5.50", "$7")
    hand, stakes = text_hand(tmp_path, raised.replace("raises $0.75 to $1.25", "raises $1 to $2"))
    assert (stakes.rules.put_in, stakes.depth, hand.betting) == ((100, 25), 100, "r200c/cr350r650f")
    go = SITES["FullTilt"].replace("Table Link (heads up)", "$60 Matrix (1), Table 1").replace("($", "(")
    _, stakes = text_hand(tmp_path, go)
    assert stakes.tournament and stakes.currency == ""
    out = STARS.replace("p1: posts", "Seat 3: p9 ($5 in chips) is sitting out\np1: posts", 1)
    assert text_hand(tmp_path, out).hand.names == ("p: 0", "p1")


def test_hands_that_cannot_be_reviewed_are_refused_with_the_reason(tmp_path):
    """A truncated hand ends where the next one begins; the message for iPoker's XML names that format."""
    assert "is XML, as iPoker's sites write it" in text_hand(tmp_path, '<?xml version="1.0"?>\n<session></session>\n')
    reasons = {
        STARS.replace("Hold'em No", "Hold'em Pot"): "limits the bets",
        STARS.replace("Hold'em No", "6+ Hold'em No"): "with all 52 cards",
        STARS.replace("Hold'em No", "Omaha No"): "another game",
        SIXMAX[: SIXMAX.index("Dov: posts")]
        + "Seat 7: Gus ($9 in chips)\nDov: posts small blind $0.50\nGus: posts big blind $1\n"
        + SIXMAX[SIXMAX.index("*** HOLE") : SIXMAX.index("*** FLOP")]: "a hand of 7 players",
        SIXMAX[: SIXMAX.index("PokerStars Hand #20002")].replace("Dov: posts small blind $0.50\n", ""): "no player has",
        STARS.replace("*** FLOP", "*** FIRST FLOP"): "run twice",
        STARS[: STARS.index("p1: folds")]: "cut off",
        STARS.replace("($100 in", "($0.20 in"): "there is no decision",
    }
    for text, reason in reasons.items():
        assert reason in text_hand(tmp_path, text)
    cut = STARS[: STARS.index("p1: bets") + 7]
    (tmp_path / "two.txt").write_text(cut + STARS)
    one, other = read_hands(tmp_path / "two.txt", GAME)
    assert "cut off" in one.why and other.hand is not None


def test_an_impossible_pot_is_refused_with_both_amounts(tmp_path):
    larger = text_hand(tmp_path, STARS.replace("Total pot $5.50", "Total pot $5.60"))
    assert "the pot is 5.60 in the file, and the pot by betting and blinds is 5.5" in larger
    assert "4.5 and a rake of 0 were taken" in text_hand(tmp_path, STARS.replace("collected $5.50", "collected $4.50"))
    winner = text_hand(tmp_path, STARS.replace("p: 0 collected", "p1 collected"))
    assert "-275 chips were won by BB there, and by cards and betting 275" in winner
    (tmp_path / "a.phhs").write_text(ONLINE.replace("p1 sm ????", "p1 sm AhAd") + "finishing_stacks = [1600, 1476]\n")
    ((_, why),) = found(tmp_path / "a.phhs")
    assert "p1 loses 251.58 in the file, and 225 by the rules" in why or "p2" in why


def test_hands_of_six_players_are_read(tmp_path):
    """Read five hands of PokerStars, one of an ACPC log and one of a PHH file.

    The five: a raise that the big blind calls; three all-in with a side pot, another sitting out; antes of three; a
    cold call; a player who posts both blinds to join. Effective stacks are those of players who put chips in."""
    (tmp_path / "six.txt").write_text(SIXMAX)
    (tmp_path / "six.phh").write_text(PLURIBUS)
    called, all_in, antes, cold, posts = (one.hand or one.why for one in read_hands(tmp_path / "six.txt", GAME))
    assert called.hand == LoggedHand(
        20001,
        "ffr250ffc/cr430c/cc/r880c",
        ("", "KhQd", "", "", "As7s", ""),
        ("Qs7h2d", "3c", "9s"),
        (-50, 930, 0, 0, -880, 0),
        ("Dov", "Eli", "Fay", "Ada", "Bea", "Cyd"),
    )
    assert (called.stakes.seats, called.stakes.depth) == (6, 100)
    assert (all_in.hand.betting, all_in.hand.names) == ("r300fr900r1850r6400fc///", ("Bea", "Cyd", "Dov", "Eli", "Ada"))
    assert all_in.hand.chips == (5850 - 1850, 9100 - 6400, -300, 0, -6400) and all_in.stakes.depth == 101.35
    assert (antes.hand.betting, antes.hand.chips, antes.stakes.depth) == ("fr525c/r925f", (550, -525, -25), 7.5)
    assert antes.stakes.rules.put_in == (125, 225, 25) and antes.stakes.tournament and not antes.stakes.currency
    assert cold.hand.chips == (-50, -100, 400, 0, 0, -250)
    assert posts.stakes.rules.put_in == (50, 100, 0, 0, 100, 0) and sum(posts.stakes.rules.dead) == 50
    assert (posts.hand.betting, posts.hand.chips[-2:], posts.stakes.depth) == ("ffcr400fff", (-150, 300), 100)
    (tmp_path / "six.log").write_text(SIX)
    (logged,) = read_hands(tmp_path / "six.log", GAME, HoldemGame(seats=6, stack=10_000))
    assert logged.hand.hand.text() == SIX and logged.hand.stakes.seats == 6
    ((pluribus, why),) = found(tmp_path / "six.phh")
    assert not why and pluribus.chips == (310, -100, 0, -210, 0, 0)


def test_a_straddle_moves_the_first_decision(tmp_path):
    text = SIXMAX[: SIXMAX.index("Fay: folds")].replace("*** HOLE", "Fay: posts straddle $2\n*** HOLE")
    text += "Ada: raises $3 to $5\n" + "".join(f"{name}: folds\n" for name in ("Bea", "Cyd", "Dov", "Eli", "Fay"))
    hand, stakes = text_hand(tmp_path, text)
    assert (hand.betting, hand.chips) == ("r500fffff", (-50, -100, -200, 350, 0, 0))
    assert (stakes.rules.put_in, stakes.rules.first_player[0]) == ((50, 100, 200, 0, 0, 0), 3)


def test_an_impossible_side_pot_is_refused(tmp_path):
    """The side pot goes to its loser, the main pot to a player who folded, or the totals are wrong."""
    hand = SIXMAX[SIXMAX.index("PokerStars Hand #20002") : SIXMAX.index("PokerStars Hand #20003")]
    assert not isinstance(text_hand(tmp_path, hand), str)
    errors = {
        "Cyd collected": ("Ada collected", "BB there, and by cards and betting 2700"),
        "Bea collected": ("Dov collected", "SB there, and by cards and betting 4000"),
        "$149.50": ("$148.50", "the pot is 148.50 in the file, and the pot by betting and blinds is 149.5"),
        "Rake $3": ("Rake $4", "146.5 and a rake of 4 were taken from the pot"),
    }
    for text, (planted, reason) in errors.items():
        assert reason in text_hand(tmp_path, hand.replace(text, planted)), text


def test_random_hands_of_three_to_six_players_pay_as_in_pokerkit(tmp_path):
    """PokerKit plays and writes the hands, with unequal stacks and antes.

    All cards are known, so the reader computes the chips by the rules."""
    rng = np.random.default_rng(5)
    for number in range(60):
        seats, ante = 3 + number % 4, 10 * (number % 2)
        stacks, blinds = rng.integers(300, 4_000, seats).tolist(), (50, 100) + (0,) * (seats - 2)
        table = PokerKitTable(stacks, (ante,) * seats, blinds, rng.permutation(52)[: 2 * seats + 5].tolist())
        while table.state.actor_index is not None:
            bounds, draw = table.bounds(0), rng.random()
            if bounds and draw < 0.3:
                amount = bounds[0] if draw < 0.2 else min(bounds[1], 2 * bounds[0])
                table.play(amount, 0)
            else:
                table.play("c" if draw < 0.85 or not table.state.can_fold() else "f", 0)
        game = NoLimitTexasHoldem(AUTOMATIONS, True, (ante,) * seats, blinds, 100)
        (tmp_path / "hand.phh").write_text(HandHistory.from_game_state(game, table.state).dumps())
        ((hand, why),) = found(tmp_path / "hand.phh")
        assert not why
        after = np.array(table.state.stacks) - stacks
        assert np.abs(np.array(hand.chips) - after).max() <= seats, number  # odd chips go to other winners


def test_every_legal_raise_is_read(tmp_path):
    """Raises to 60, ..., 99 at blinds 15/30 are followed by the smallest legal re-raise.

    Rounded to chips of blinds 50/100, 13 of these re-raises would be too small."""
    for target in range(60, 100):
        text = STARS.replace("$0.25/$0.50", "15/30").replace("$0.25", "15").replace("$0.50", "30").replace("$1", "$")
        text = text[: text.index("p1: raises")].replace("($00 in", "(1500 in").replace("($01.50 in", "(1500 in")
        text += f"p1: raises {target - 30} to {target}\np: 0: raises {target - 30} to {2 * target - 30}\np1: folds\n"
        text += f"p: 0 collected {2 * target} from pot\n*** SUMMARY ***\n"
        assert text_hand(tmp_path, text).hand.betting == f"r{target}r{2 * target - 30}f"
