"""Fuzzed hands and ranges, as users type them."""

from abstraction.cards import RANKS, parse_cards
from abstraction.range_notation import parse_range
from fuzzing import Format, damaged

_HANDS = (b"As", b"Kh", b"T", b"10", b"c", b" ", b",", b"-", b"+", b":0.5", b"s", b"o", "é".encode())


def _hand(rng):
    cards = "".join(rng.choice(RANKS) + rng.choice("cdhs") for _ in range(rng.randrange(6))).encode()
    return damaged(rng, cards, _HANDS) if rng.random() < 0.5 else cards


def _item(rng):
    high, low = rng.choice(RANKS), rng.choice(RANKS)
    text = high + low + rng.choice(("", "s", "o", "+", "s+", f"-{rng.choice(RANKS)}{low}", "s-A2s", "cd"))
    return text + rng.choice(("", "", f":{rng.random():.3g}", ":1e-9", ":2"))


def _range(rng):
    text = ",".join(_item(rng) for _ in range(rng.randrange(1, 9))).encode()
    if rng.random() < 0.5:
        text = ",".join(rng.choice(("AA", "AKs:0.5", "QQ-99", "A5s-A2s", "KQo", "72o")) for _ in range(3)).encode()
    return damaged(rng, text, _HANDS) if rng.random() < 0.4 else text


HAND = Format(_hand, lambda data: parse_cards(data.decode()))
RANGE = Format(_range, lambda data: parse_range(data.decode()))
