"""What is in a policy directory besides probabilities: the game as arrays and lists of text, enough to rebuild it.

    meta.json                      manifest: game, counts, blocks, card numbering, quantisation, provenance, and every
                                   file with its length and CRC-32C
    tree_FIELD.npy                 [N] one for each field of `TreeArrays`, and tree_parent.npy
    tree_label.json                the action or chance outcome that leads into each node
    infosets_player0.json          names by row, for trees with hidden moves
    cards_FIELD.npy, ..._street0.npy, cards_hand_names.json      the card model of the poker family
    probability_street0_player1.npy   [buckets, slots] uint8 or uint16; divide by 255 or 65,535
    weight_street0_player1.npy        [buckets, rows] float32; 0: never reached, play uniformly

An infoset is a decision node and a bucket: its probabilities are row `bucket` of the node's block, columns
`slot .. slot+count-1` in the order of the node's children.  The bucket of a hand on a board is
cards_bucket_streetS[player, board, hand]; trees with hidden moves have bucket 0 only.

Whole hold'em has, in place of the cards_ files:

    deck_buckets_street0.npy ...   [canonical boards, 1326] bucket of each combination of hole cards; preflop one row
    deck_location_3.npy, 4, 5      [C(52, n)] int32 by the rank of a board, C(c0, 1) + C(c1, 2) + ... over its cards in
                                   ascending order: row of the bucket table · 32 + suit permutation
    deck_hole_permutation.npy      [24, 1326] int16: the combination that each one becomes under a suit permutation

so that the bucket of a hand is deck_buckets_streetS[row, deck_hole_permutation[permutation, combination]].
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.boards import board_classes, board_tables
from abstraction.cards import CARD_COUNT, card_text
from mccfr.deal import CardModel
from mccfr.games.game import Game
from mccfr.games.holdem_deck import HoldemDeck
from mccfr.hands import card_names
from mccfr.tree import CompiledTree, TreeArrays

DECK = "deck_"
"""How the files of a whole deck's buckets begin: too large to be read at once, they are mapped."""
FORMAT = "policy"
FORMAT_VERSION = 1
META = "meta.json"
Arrays = dict[str, npt.NDArray[Any]]
Texts = dict[str, list[str]]

_TREE_DTYPES = {name: np.dtype(kind) for name, kind in zip(TreeArrays._fields, "bbbiiiidddb", strict=True)}


def block_file(kind: str, block: int) -> str:
    """Name of a block's file: "probability_street0_player1.npy"."""
    return f"{kind}_street{block // 2}_player{block % 2}.npy"


def game_arrays(game: Game) -> Arrays:
    """The game's arrays by the name of their file, without its ending."""
    arrays: Arrays = {f"tree_{name}": getattr(game.tree.arrays, name) for name in TreeArrays._fields}
    arrays["tree_parent"] = game.tree.parent
    cards = game.cards
    if isinstance(cards, HoldemDeck):
        arrays |= _deck_arrays(cards)
    elif cards is not None:
        for name in ("hand_cards", "reach", "strength", "buckets"):
            arrays[f"cards_{name}"] = getattr(cards, name)
        for street in range(cards.streets):
            for name in ("board_cards", "board_parent", "bucket"):
                arrays[f"cards_{name}_street{street}"] = getattr(cards, name)[street]
    return arrays


def game_texts(game: Game) -> Texts:
    """The game's lists of text by the name of their file, without its ending."""
    texts = {"tree_label": list(game.tree.label)}
    if isinstance(game.cards, CardModel):
        texts["cards_hand_names"] = list(game.cards.hand_names)
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
        "board_cards": list(game.cards.board_cards) if isinstance(game.cards, HoldemDeck) else None,
        "card_numbering": _card_numbering(game),
        "blocks": [_block_fields(game, block) for block in range(2 * tree.streets)],
    }


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
    names: dict[int, str]
    if isinstance(game.cards, HoldemDeck):
        names = {card: card_text(card) for card in range(CARD_COUNT)}
    elif game.cards is None or not (names := card_names(game.cards)):
        return None
    return {
        "card": "rank times the number of suits, plus suit",
        "hand": "index into cards_hand_cards; of two cards a < b: b(b-1)/2 + a",
        "card_names": [names.get(card, "") for card in range(max(names) + 1)],
    }


def rebuild_game(meta: Mapping[str, Any], arrays: Arrays, texts: Texts) -> Game:
    """The game of a policy directory; `ValueError` or `KeyError` where arrays are missing or do not fit each other."""
    nodes = len(texts["tree_label"])
    for name, dtype in (*_TREE_DTYPES.items(), ("parent", np.dtype(np.int32))):
        array = arrays[f"tree_{name}"]
        if array.shape != (nodes,) or array.dtype != dtype:
            raise ValueError(
                f"tree_{name}.npy has shape {array.shape} of {array.dtype}; {(nodes,)} of {dtype} is needed"
            )
    tree = CompiledTree(
        TreeArrays(*(arrays[f"tree_{name}"] for name in TreeArrays._fields)),
        arrays["tree_parent"],
        texts["tree_label"],
        meta["streets"],
        np.array([block["slots"] for block in meta["blocks"]], np.int64),
        np.array([block["rows"] for block in meta["blocks"]], np.int64),
        (texts["infosets_player0"], texts["infosets_player1"]) if "infosets_player0" in texts else None,
    )
    cards: CardModel | HoldemDeck | None = None
    if "cards_reach" in arrays:
        cards = _rebuild_cards(meta["streets"], arrays, texts["cards_hand_names"])
    elif meta.get("board_cards"):
        cards = _rebuild_deck(meta, arrays)
    return Game(meta["name"], tree, cards, meta["offset_chips"], meta["big_blind_chips"], meta["pot_chips"])


def _deck_arrays(deck: HoldemDeck) -> Arrays:
    """Bucket tables of every street and what finds a hand in them."""
    locate = board_tables()
    arrays: Arrays = {f"{DECK}buckets_street{street}": table for street, table in enumerate(deck.load())}
    arrays |= {
        f"{DECK}location_{cards}": board_classes(cards).location
        for cards in map(deck.cards_on, range(deck.streets))
        if cards
    }
    return arrays | {f"{DECK}hole_permutation": locate.hole_permutation}


def _rebuild_deck(meta: Mapping[str, Any], arrays: Arrays) -> HoldemDeck:
    tables = [arrays[f"{DECK}buckets_street{street}"] for street in range(meta["streets"])]
    buckets = np.array([block["buckets"] for block in meta["blocks"]], np.int64).reshape(-1, 2)
    return HoldemDeck(tuple(meta["board_cards"]), buckets, lambda: tables)


def _rebuild_cards(streets: int, arrays: Arrays, names: list[str]) -> CardModel:
    boards, parents, bucket = (
        [arrays[f"cards_{name}_street{street}"] for street in range(streets)]
        for name in ("board_cards", "board_parent", "bucket")
    )
    for street, numbers in enumerate(bucket):
        expected = (2, len(boards[street]), len(names))
        if numbers.shape != expected:
            raise ValueError(f"cards_bucket_street{street}.npy has shape {numbers.shape}; {expected} is needed")
    return CardModel(
        arrays["cards_hand_cards"],
        names,
        arrays["cards_reach"],
        boards,
        parents,
        arrays["cards_strength"],
        bucket,
        arrays["cards_buckets"],
    )
