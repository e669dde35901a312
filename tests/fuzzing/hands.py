"""Fuzzed hand history files of every format."""

from functools import cache

from acpc import dealer, plan

from fuzzing import Format, damaged
from fuzzing.files import _folder
from mccfr.config.game_tables import HoldemGame
from mccfr.matches.hand_files import read_hands
from mccfr.matches.hand_files.writing import write_hands

_GAME = HoldemGame()
_ANSWER = (
    b'{"client_pos": 1, "hole_cards": ["5c", "4s"], "bot_hole_cards": ["As", "7d"], "board": ["Qs", "7h", "2d"], '
    b'"action": "b200c/kb300f", "winnings": 200}'
)
_WORDS = (b"PokerStars Hand #", b"p1 cbr ", b": ", b"\n", b"[1]\n", b"\xef\xbb\xbf")
_PIECES = (*b"STATE: ' r20000 | {".split(), *_WORDS)


@cache
def _files():
    at = dealer(plan(hands=3), ("random", "min-raise"))
    hands = [at.play(number) for number in range(3)]
    found = [b"\n".join(hand.text().encode() for hand in hands), _ANSWER]
    for name in ("a.phhs", "a.stars.txt"):
        write_hands(_folder() / name, [hand.hand() for hand in hands], _GAME)
        found.append((_folder() / name).read_bytes())
    return found


def _make(rng):
    data = rng.choice(_files())
    return data if rng.random() < 0.1 else damaged(rng, data, _PIECES)


def _read(data):
    path = _folder() / "hands"
    path.write_bytes(data)
    for found in read_hands(path, _GAME):
        if found.hand is None:
            raise ValueError(found.why)
        chips = found.hand.hand.chips
        assert chips is None or chips[0] == -chips[1]


HANDS = Format(_make, _read)
