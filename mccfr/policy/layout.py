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
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.boards import BOARD_COUNTS, board_classes, board_tables
from abstraction.cards import CARD_COUNT, COMBO_COUNT, card_text
from mccfr.cards.cards import Cards
from mccfr.cards.deck import WholeDeck
from mccfr.cards.listed import ListedCards, card_names
from mccfr.cards.nothing import NO_CARDS
from mccfr.games.game import Game
from mccfr.policy.checks import (
    MetaFields,
    check_cards,
    check_deck_buckets,
    check_location,
    check_permutations,
    check_tree,
)
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
    if isinstance(cards, WholeDeck):
        arrays |= _deck_arrays(cards)
    elif isinstance(cards, ListedCards):
        for name in ("hand_cards", "reach", "strength", "buckets"):
            arrays[f"cards_{name}"] = getattr(cards, name)
        for street in range(cards.streets):
            for name in ("board_cards", "board_parent", "bucket"):
                arrays[f"cards_{name}_street{street}"] = getattr(cards, name)[street]
    return arrays


def game_texts(game: Game) -> Texts:
    """The game's lists of text by the name of their file, without its ending."""
    texts = {"tree_label": list(game.tree.label)}
    if isinstance(game.cards, ListedCards):
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
        "board_cards": list(game.cards.board_cards) if isinstance(game.cards, WholeDeck) else None,
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
    if isinstance(game.cards, WholeDeck):
        names = {card: card_text(card) for card in range(CARD_COUNT)}
    elif not isinstance(game.cards, ListedCards) or not (names := card_names(game.cards)):
        return None
    return {
        "card": "rank times the number of suits, plus suit",
        "hand": "index into cards_hand_cards; of two cards a < b: b(b-1)/2 + a",
        "card_names": [names.get(card, "") for card in range(max(names) + 1)],
    }


def rebuild_game(meta: MetaFields, arrays: Arrays, texts: Texts, *, check: bool = True) -> Game:
    """The game of a policy directory.

    check  False: tables of a whole deck's buckets are taken as they are; small arrays are always looked at

    Raises `ValueError`, with the file's name, where arrays are missing, do not fit each other or are out of range.
    """
    labels = _text(texts, "tree_label")
    nodes = (len(labels),)
    fields = [_array(arrays, f"tree_{name}", nodes, dtype) for name, dtype in _TREE_DTYPES.items()]
    names = None
    if "infosets_player0" in texts:
        names = _text(texts, "infosets_player0"), _text(texts, "infosets_player1")
    tree = CompiledTree(
        TreeArrays(*fields),
        _array(arrays, "tree_parent", nodes, np.dtype(np.int32)),
        labels,
        meta.streets,
        np.array([block.slots for block in meta.blocks], np.int64),
        np.array([block.rows for block in meta.blocks], np.int64),
        names,
    )
    check_tree(tree)
    if names is not None and [len(own) for own in names] != tree.row_count[:2].tolist():
        raise ValueError(f"infosets_player0.json and infosets_player1.json do not have {tree.row_count[:2]} names")
    cards: Cards = NO_CARDS
    if "cards_reach" in arrays:
        cards = listed = _rebuild_cards(meta.streets, arrays, _text(texts, "cards_hand_names"))
        check_cards(listed)
    elif meta.board_cards:
        cards = _rebuild_deck(meta, arrays, check)
    game = Game(meta.name, tree, cards, meta.offset_chips, meta.big_blind_chips, meta.pot_chips)
    if game.buckets.tolist() != [block.buckets for block in meta.blocks]:
        raise ValueError(f"{META} does not state the buckets {game.buckets.tolist()} of its cards")
    return game


def _array(arrays: Arrays, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    array = _present(arrays, name)
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"{name}.npy has shape {array.shape} of {array.dtype}; {shape} of {dtype} is needed")
    return array


def _present(arrays: Arrays, name: str) -> npt.NDArray[Any]:
    if name not in arrays:
        raise ValueError(f"{name}.npy is missing from {META}")
    return arrays[name]


def _text(texts: Mapping[str, Any], name: str) -> list[str]:
    found = texts.get(name)
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise ValueError(f"{name}.json is missing from {META}, or is no list of texts")
    return found


def _deck_arrays(deck: WholeDeck) -> Arrays:
    """Bucket tables of every street and what finds a hand in them."""
    locate = board_tables()
    arrays: Arrays = {f"{DECK}buckets_street{street}": table for street, table in enumerate(deck.load())}
    arrays |= {
        f"{DECK}location_{cards}": board_classes(cards).location
        for cards in map(deck.cards_on, range(deck.streets))
        if cards
    }
    return arrays | {f"{DECK}hole_permutation": locate.hole_permutation}


def _rebuild_deck(meta: MetaFields, arrays: Arrays, check: bool) -> WholeDeck:
    dealt = tuple(meta.board_cards or ())
    if len(dealt) != meta.streets or min(dealt) < 0 or any(sum(dealt[:n]) not in (0, 3, 4, 5) for n in range(1, 5)):
        raise ValueError(f"{META} has board_cards {list(dealt)}, which are not those of {meta.streets} streets")
    tables = [_present(arrays, f"{DECK}buckets_street{street}") for street in range(meta.streets)]
    buckets = np.array([block.buckets for block in meta.blocks], np.int64).reshape(-1, 2)
    deck = WholeDeck(dealt, buckets, lambda: tables)
    for street, table in enumerate(tables):
        name, cards = f"{DECK}buckets_street{street}.npy", deck.cards_on(street)
        if table.shape != (BOARD_COUNTS.get(cards, 1), COMBO_COUNT):
            raise ValueError(f"{name} has shape {table.shape}, which is not that of boards of {cards} cards")
        if check:
            check_deck_buckets(name, table, cards, int(buckets[street].min()))
            if cards:
                location = f"{DECK}location_{cards}"
                boards = (comb(CARD_COUNT, cards),)
                check_location(f"{location}.npy", _array(arrays, location, boards, np.dtype(np.int32)), cards)
    check_permutations(f"{DECK}hole_permutation.npy", _present(arrays, f"{DECK}hole_permutation"))
    return deck


def _rebuild_cards(streets: int, arrays: Arrays, names: list[str]) -> ListedCards:
    boards, parents, bucket = (
        [_present(arrays, f"cards_{name}_street{street}") for street in range(streets)]
        for name in ("board_cards", "board_parent", "bucket")
    )
    hand_cards, reach, strength, buckets = (
        _present(arrays, f"cards_{name}") for name in ("hand_cards", "reach", "strength", "buckets")
    )
    return ListedCards(hand_cards, names, reach, boards, parents, strength, bucket, buckets)
