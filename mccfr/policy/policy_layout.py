"""File names and contents of a policy directory.

The files describe the game completely, so that a reader needs no other source.

    meta.json                      manifest: game, counts, blocks, card numbering, quantisation, provenance,
                                   abstraction, bucket tables, row checksums, every file with its length and CRC-32C
    tree_FIELD.npy                 [N] one for each field of `TreeArrays`; tree_parent.npy; tree_street.npy, the street
    tree_put_in.npy                [N, P] chips of each of P players over the whole hand; betting trees only
    tree_payoffs.npy               [N, P] chips of each player at terminals; three and more players, no cards apart
    tree_pots_FIELD.npy            main and side pots at terminals, one for each field of `mccfr.trees.compiled.Pots`;
                                   betting trees of three and more players
    tree_label.json                the action or chance outcome that leads into each node
    tree_line.json                 the line that leads to each node, as `mccfr.trees.betting_lines` writes it
    tree_action.json               name of the action into each node, in games whose labels are numbers
    infosets_player0.json          names of infosets by row, for trees with hidden moves
    cards_FIELD.npy, ..._street0.npy, cards_hand_names.json      hands, boards and buckets of listed cards
    probability_street0_player1.npy   [buckets, slots] uint8 or uint16; divide by 255 or 65,535
    weight_street0_player1.npy        [buckets, rows] float32; 0: never reached, play uniformly
    row_checksums.npy              CRC-32C of pieces of the large tables (`mccfr.policy.row_checksums`)
    values_..., value_...          expected values of buckets, if exported (`mccfr.policy.policy_values`)

A block is the tables of one street and player.  An infoset is a decision node and a bucket.  Its probabilities are
row `bucket` of the node's block, columns `slot .. slot+count-1`, in the order of the node's children.
The bucket of a hand on a board is cards_bucket_streetS[player, board, hand].  Trees with hidden moves have bucket 0
only.

Whole hold'em has these files instead of the cards_ files:

    deck_buckets_street0.npy ...   [bytes] uint8: for each canonical board (preflop one) the zlib stream of [1326]
                                   buckets of all combinations of hole cards
    board_starts_street0.npy ...   [canonical boards + 1] uint32: first byte of each stream, and the end
    deck_location_3.npy, 4, 5      [C(52, n)] int32 by the rank of a board, C(c0, 1) + C(c1, 2) + ... over its cards in
                                   ascending order: row of the bucket table · 32 + suit permutation
    deck_hole_permutation.npy      [24, 1326] int16: the combination that each one becomes under a suit permutation

    history_street1.npy ...        [buckets before, percentiles] int32, if buckets have recall
    (`abstraction.recall_buckets`)

The bucket of a hand is n = buckets of its canonical board at deck_hole_permutation[permutation, combination].  With a
history file it is history_streetS[bucket on the street before, n].

Bucket tables have the narrowest of uint8, uint16 and uint32 that holds all numbers and the mark of impossible hands.
The mark is the dtype's largest number.
"""

from collections.abc import Iterator
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cards.full_deck import WholeDeck
from mccfr.games.game import Game, Rake
from mccfr.trees.betting_lines import all_lines
from mccfr.trees.compiled import TreeArrays

DECK = WholeDeck.stem
"""Prefix of the files of a whole deck's buckets, which are mapped when read."""
FORMAT = "policy"
FORMAT_VERSION = 4
META = "meta.json"
LINES = "tree_line"
"""File of the betting lines, for other programs; this program derives them from the labels."""
Arrays = dict[str, npt.NDArray[Any]]
Texts = dict[str, list[str]]


def block_file(kind: str, block: int, players: int) -> str:
    """Return the name of a block's file, such as "probability_street0_player1.npy".

    kind     "probability" or "weight"
    block    the tables of one street and player, as players · street + player
    players  number of players
    """
    return f"{kind}_street{block // players}_player{block % players}.npy"


def bucket_dtype(buckets: int) -> np.dtype[Any]:
    """Return the narrowest of uint8, uint16 and uint32 for a table of `buckets` different buckets.

    Its largest number is not used for a bucket: it marks impossible hands.
    """
    return next(np.dtype(d) for d in (np.uint8, np.uint16, np.uint32) if buckets <= impossible(np.dtype(d)))


def impossible(dtype: np.dtype[Any]) -> int:
    """Return the number for impossible hands in a bucket table of a dtype: the largest one.

    A hand is impossible if it shares a card with the board, or is never dealt.
    """
    return int(np.iinfo(dtype).max)


def game_arrays(game: Game) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Yield (file name without ending, array) of the game's tree and cards, created one at a time."""
    tree = game.tree
    for name in TreeArrays._fields:
        yield f"tree_{name}", getattr(tree.arrays, name)
    yield "tree_parent", tree.parent
    yield "tree_street", tree.street
    if tree.put_in is not None:
        yield "tree_put_in", tree.put_in
    if tree.payoffs is not None:
        yield "tree_payoffs", tree.payoffs
    if tree.pots is not None:
        for name, values in tree.pots._asdict().items():
            yield f"tree_pots_{name}", values
    yield from game.cards.arrays(bucket_dtype)


def game_texts(game: Game) -> Texts:
    """Return {file name without ending: list of texts} for the game's texts, such as names of actions."""
    texts = {"tree_label": list(game.tree.label), LINES: all_lines(game.tree)}
    texts |= game.cards.texts()
    if game.tree.action_names is not None:
        texts["tree_action"] = list(game.tree.action_names)
    if game.tree.infoset_names is not None:
        for player, names in enumerate(game.tree.infoset_names):
            texts[f"infosets_player{player}"] = list(names)
    return texts


def game_fields(game: Game) -> dict[str, Any]:
    """Return the fields of `meta.json` that describe the game."""
    tree = game.tree
    return {
        "name": game.name,
        "big_blind_chips": game.big_blind_chips,
        "pot_chips": game.pot_chips,
        "offset_chips": game.offset_chips,
        "counts": game.counts(),
        "streets": tree.streets,
        "board_cards": None if game.cards.board_cards_by_street is None else list(game.cards.board_cards_by_street),
        "card_numbering": _card_numbering(game),
        "bucket_tables": _bucket_tables(game),
        "blocks": [_block_fields(game, block) for block in range(len(tree.row_slots))],
        **_rake_fields(game.rake),
    }


def _rake_fields(rake: Rake | None) -> dict[str, Any]:
    """Return the `rake` field: the share of a pot, and the cap in chips or None; {} without rake."""
    return {} if rake is None else {"rake": {"share": rake.share, "cap": rake.cap if isfinite(rake.cap) else None}}


def _bucket_tables(game: Game) -> list[dict[str, Any]]:
    """Return the field `bucket_tables` of meta.json: an entry for each street's table; [] without cards.

    An entry has file, dtype, and the number that marks impossible hands.
    """
    tables = [(game.cards.bucket_table(street), game.cards.in_table(street)) for street in range(game.cards.streets)]
    dtypes = [(name, bucket_dtype(count)) for name, count in tables if name is not None]
    return [{"file": f"{name}.npy", "dtype": dtype.name, "impossible": impossible(dtype)} for name, dtype in dtypes]


def _block_fields(game: Game, block: int) -> dict[str, Any]:
    rows, players = int(game.tree.row_count[block]), game.tree.players
    return {
        "street": block // players,
        "player": block % players,
        "buckets": int(game.buckets[block]),
        "rows": rows,
        "slots": int(game.tree.row_slots[block]),
        "probability": block_file("probability", block, players) if rows else None,
        "weight": block_file("weight", block, players) if rows else None,
    }


def _card_numbering(game: Game) -> dict[str, Any] | None:
    """Return the field `card_numbering` of meta.json; None if the game has no named cards.

    It has the text of every card by number, and says how cards and hands are numbered.
    """
    if not (names := game.cards.card_texts):
        return None
    return {
        "card": "rank times the number of suits, plus suit",
        "hand": "index into cards_hand_cards; of two cards a < b: b(b-1)/2 + a",
        "card_names": [names.get(card, "") for card in range(max(names) + 1)],
    }
