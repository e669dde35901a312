"""What is in a policy directory besides probabilities: the game as arrays and lists of text, enough to rebuild it.

    meta.json                      manifest: game, counts, blocks, card numbering, quantisation, provenance,
                                   abstraction, bucket tables, row checksums, every file with its length and CRC-32C
    tree_FIELD.npy                 [N] one for each field of `TreeArrays`; tree_parent.npy; tree_street.npy, the street
    tree_put_in.npy                [N, 2] chips of each player over the whole hand; betting trees only
    tree_label.json                the action or chance outcome that leads into each node
    tree_line.json                 the line that leads to each node, as `mccfr.trees.lines` writes it
    infosets_player0.json          names by row, for trees with hidden moves
    cards_FIELD.npy, ..._street0.npy, cards_hand_names.json      the card model of the poker family
    probability_street0_player1.npy   [buckets, slots] uint8 or uint16; divide by 255 or 65,535
    weight_street0_player1.npy        [buckets, rows] float32; 0: never reached, play uniformly
    row_checksums.npy              CRC-32C of pieces of the large tables (`mccfr.policy.row_checksums`)

An infoset is a decision node and a bucket: its probabilities are row `bucket` of the node's block, columns
`slot .. slot+count-1` in the order of the node's children.  The bucket of a hand on a board is
cards_bucket_streetS[player, board, hand]; trees with hidden moves have bucket 0 only.

Whole hold'em has, in place of the cards_ files:

    deck_buckets_street0.npy ...   [canonical boards, 1326] bucket of each combination of hole cards; preflop one row
    deck_location_3.npy, 4, 5      [C(52, n)] int32 by the rank of a board, C(c0, 1) + C(c1, 2) + ... over its cards in
                                   ascending order: row of the bucket table · 32 + suit permutation
    deck_hole_permutation.npy      [24, 1326] int16: the combination that each one becomes under a suit permutation

    history_street1.npy ...        [buckets before, percentiles] int32, where buckets remember (`abstraction.history`)

so that the bucket of a hand is deck_buckets_streetS[row, deck_hole_permutation[permutation, combination]], or with a
history history_streetS[bucket before, what that says].

Bucket tables of both kinds are uint8 where all numbers and the mark of impossible hands fit, else uint16 or uint32; the
mark is the dtype's largest number, and `bucket_tables` of meta.json states it.
"""

from collections.abc import Iterator
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cards.deck import WholeDeck
from mccfr.games.game import Game, Rake
from mccfr.trees.compiled import TreeArrays
from mccfr.trees.lines import all_lines

DECK = WholeDeck.stem
"""How the files of a whole deck's buckets begin: too large to be read at once, they are mapped; policies share them."""
FORMAT = "policy"
FORMAT_VERSION = 3
META = "meta.json"
LINES = "tree_line"
"""Texts for other programs: this one makes them from the labels."""
Arrays = dict[str, npt.NDArray[Any]]
Texts = dict[str, list[str]]


def block_file(kind: str, block: int) -> str:
    """Name of a block's file: "probability_street0_player1.npy"."""
    return f"{kind}_street{block // 2}_player{block % 2}.npy"


def bucket_dtype(buckets: int) -> np.dtype[Any]:
    """The narrowest of uint8, uint16 and uint32 that holds numbers below `buckets` and a mark above them."""
    return next(np.dtype(d) for d in (np.uint8, np.uint16, np.uint32) if buckets <= impossible(np.dtype(d)))


def impossible(dtype: np.dtype[Any]) -> int:
    """What stands in a bucket table where a hand cannot be: it holds a card of the board, or has no weight."""
    return int(np.iinfo(dtype).max)


def game_arrays(game: Game) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """The game's arrays with the name of their file, without its ending; one large one is made at a time."""
    tree = game.tree
    for name in TreeArrays._fields:
        yield f"tree_{name}", getattr(tree.arrays, name)
    yield "tree_parent", tree.parent
    yield "tree_street", tree.street
    if tree.put_in is not None:
        yield "tree_put_in", tree.put_in
    yield from game.cards.arrays(bucket_dtype)


def game_texts(game: Game) -> Texts:
    """The game's lists of text by the name of their file, without its ending."""
    texts = {"tree_label": list(game.tree.label), LINES: all_lines(game.tree)}
    texts |= game.cards.texts()
    if game.tree.action_names is not None:
        texts["tree_action"] = list(game.tree.action_names)
    if game.tree.infoset_names is not None:
        for player in range(2):
            texts[f"infosets_player{player}"] = list(game.tree.infoset_names[player])
    return texts


def game_fields(game: Game) -> dict[str, Any]:
    """What `meta.json` says of the game."""
    tree = game.tree
    return {
        "name": game.name,
        "big_blind_chips": game.big_blind_chips,
        "pot_chips": game.pot_chips,
        "offset_chips": game.offset_chips,
        "counts": game.counts(),
        "streets": tree.streets,
        "board_cards": None if game.cards.drawn is None else list(game.cards.drawn),
        "card_numbering": _card_numbering(game),
        "bucket_tables": _bucket_tables(game),
        "blocks": [_block_fields(game, block) for block in range(2 * tree.streets)],
        **_rake_fields(game.rake),
    }


def _rake_fields(rake: Rake | None) -> dict[str, Any]:
    """Of games that take some: `share` of a pot, and `cap`, chips at most, or null."""
    return {} if rake is None else {"rake": {"share": rake.share, "cap": rake.cap if isfinite(rake.cap) else None}}


def _bucket_tables(game: Game) -> list[dict[str, Any]]:
    """Of each street: its file, dtype, and what stands where a hand is impossible; none without cards."""
    tables = [(game.cards.bucket_table(street), game.cards.in_table(street)) for street in range(game.cards.streets)]
    dtypes = [(name, bucket_dtype(count)) for name, count in tables if name is not None]
    return [{"file": f"{name}.npy", "dtype": dtype.name, "impossible": impossible(dtype)} for name, dtype in dtypes]


def _block_fields(game: Game, block: int) -> dict[str, Any]:
    rows = int(game.tree.row_count[block])
    return {
        "street": block // 2,
        "player": block % 2,
        "buckets": int(game.buckets[block]),
        "rows": rows,
        "slots": int(game.tree.row_slots[block]),
        "probability": block_file("probability", block) if rows else None,
        "weight": block_file("weight", block) if rows else None,
    }


def _card_numbering(game: Game) -> dict[str, Any] | None:
    """Text of every card, by number, and how hands are numbered; None where hands have no cards."""
    if not (names := game.cards.card_texts):
        return None
    return {
        "card": "rank times the number of suits, plus suit",
        "hand": "index into cards_hand_cards; of two cards a < b: b(b-1)/2 + a",
        "card_names": [names.get(card, "") for card in range(max(names) + 1)],
    }
