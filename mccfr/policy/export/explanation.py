"""Describes the arrays of an export of raw tables as JSON, and yields the arrays of hands' buckets."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.policy.policy_layout import bucket_dtype, game_fields, game_texts

CARDS = "cards/"
"""Beginning of the names of arrays of cards."""
_AXES = {
    "deck_buckets": ("byte",),
    "board_starts": ("board",),
    "deck_location": ("board",),
    "deck_hole_permutation": ("permutation", "combination"),
    "history": ("bucket before", "percentile"),
    "cards_hand_cards": ("hand", "card"),
    "cards_reach": ("player", "hand"),
    "cards_strength": ("board", "hand"),
    "cards_buckets": ("street", "player"),
    "cards_board_cards": ("board", "card"),
    "cards_board_parent": ("board",),
    "cards_bucket": ("player", "board", "hand"),
}
"""Axes of arrays by the beginning of their names; the first that fits counts."""
_GAME_FIELDS = ("big_blind_chips", "pot_chips", "counts", "board_cards", "card_numbering", "bucket_tables", "blocks")

UNITS = "Amounts are chips of the whole hand: all that a player has put in, blinds and antes included."
_PLAYER = "player to act; in hold'em 0 is the big blind, 1 the button"
ACTIONS = {
    "f": "fold",
    "c": "check or call",
    "b": "bet or raise, in games with one size",
    "rN": "bet or raise to N chips of the whole hand",
}
COLUMN_MEANINGS = {
    "line": "actions before the decision, / between streets",
    "street": "0 at the root",
    "player": _PLAYER,
    "hand": "hole cards, or the first of the bucket's hands, or its number; export --by hand has a row for each hand",
    "board": "board cards; the first of the bucket's boards",
    "action": ACTIONS,
    "probability": "of the action in the average strategy; uniform where weight is 0",
    "weight": "behind the row; 0: never reached",
    "infoset": "name of the information set, in games without cards beside the tree",
}
"""Meaning of the columns of CSV and Parquet."""
_EXPLANATION = {
    "units": UNITS,
    "tree/kind": {"0": "decision", "1": "terminal", "2": "chance"},
    "tree/player": _PLAYER + "; -1 at other nodes",
    "tree/block": "players * street + player of a decision; -1 at other nodes",
    "tree/first, tree/count": "children of node n are first[n] .. first[n] + count[n] - 1; node 0 is the root",
    "tree/slot, tree/row": "first cell of a decision on the axis slot of its block's tables; its cell on the axis row",
    "tree/put_in": "chips that each player has put in; in betting games",
    "tree/label": {"": "UTF-8 bytes of the action into the node, padded with zeros", **ACTIONS},
    "regret/streetS/playerP": "cumulative regrets of the decisions of street S and player P",
    "strategy_sum/streetS/playerP": "cumulative strategy: the average strategy of a decision is its cells of a bucket "
    "divided by their sum, and uniform if that is 0",
    "bucket of listed cards": "cards/cards_bucket_streetS[player, board, hand]; hands are cards/cards_hand_cards and "
    "boards cards/cards_board_cards_streetS, by card number; hand_names has their texts",
    "bucket of whole hold'em": "a card is 4 * rank (2 to A: 0 to 12) + suit (c d h s). Cards a < b are the combination "
    "b(b-1)/2 + a. A board of n cards in ascending order has the rank C(c0,1) + C(c1,2) + ...; "
    "cards/deck_location_n[rank] is 32 * canonical board + suit permutation, 0 before the flop. Bytes "
    "cards/board_starts_streetS[canonical] to [canonical + 1] of cards/deck_buckets_streetS are a zlib stream of 1326 "
    "buckets (dtype in bucket_tables); take that at cards/deck_hole_permutation[permutation, combination]. With "
    "cards/history_streetS it is a percentile, and history[bucket on the street before, percentile] is the bucket",
    "no cards": "games whose cards are in the tree have bucket 0 only",
}


def explanation(game: Game) -> dict[str, Any]:
    """Return a JSON document with the meaning, sizes and units of all arrays of an export of raw tables.

    Raw tables are those that training updates, such as regrets and strategy sums.
    """
    fields = {key: value for key, value in game_fields(game).items() if key in _GAME_FIELDS}
    return {"meaning": _EXPLANATION, **fields, "hand_names": game_texts(game).get("cards_hand_names")}


def card_arrays(game: Game) -> Iterator[tuple[str, npt.NDArray[Any], tuple[str, ...]]]:
    """Yield (name, array, names of axes) of the arrays that give a hand's bucket, without empty arrays.

    Yields nothing for cards whose buckets on later streets depend on the flop, as these arrays cannot hold them.
    """
    for name, array in game.cards.arrays(bucket_dtype) if game.cards.fits_policies else ():
        if array.size:
            yield f"{CARDS}{name}", np.asarray(array), next(_AXES[key] for key in _AXES if name.startswith(key))
