"""Rebuilds the game from the arrays and texts of a policy directory."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb, inf
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.boards import BOARD_COUNTS
from abstraction.cards import CARD_COUNT, COMBO_COUNT
from abstraction.recall_buckets import Histories
from mccfr.cards.base import Cards
from mccfr.cards.card_lists import ListedCards
from mccfr.cards.deals import NO_BUCKET
from mccfr.cards.full_deck import HISTORY, STARTS
from mccfr.cards.no_cards import no_cards
from mccfr.games.game import Game, Rake
from mccfr.policy.checks import (
    BucketTable,
    MetaFields,
    check_cards,
    check_deck_buckets,
    check_history,
    check_location,
    check_permutations,
    check_tree,
)
from mccfr.policy.policy_deck import MappedDeck, MappedTables, load_tables
from mccfr.policy.policy_layout import DECK, META, Arrays, Texts
from mccfr.policy.row_checksums import GuardedTable
from mccfr.trees.compiled import CompiledTree, Pots, TreeArrays
from storage.compressed_rows import PackedRows

_TREE_DTYPES = {name: np.dtype(kind) for name, kind in zip(TreeArrays._fields, "bbbiiiidddb", strict=True)}


@dataclass(frozen=True)
class Guards:
    """States how a policy's mapped tables are checked: as a whole on opening, or in parts by look-ups.

    path       directory of the policy
    fields     content of its meta.json
    checksums  [P] uint32 CRC-32C of all tables' pieces; a piece is about 64 KiB of a table's first axis
    checked    True if opening has compared every byte of the tables with checksums, so that look-ups compare nothing
    thorough   True to unpack and validate the buckets of all boards, which look-ups otherwise do board by board
    """

    path: Path
    fields: MetaFields
    checksums: npt.NDArray[np.uint32]
    checked: bool
    thorough: bool = False

    def table(self, name: str, rows: npt.NDArray[Any]) -> GuardedTable:
        """Return a table that compares each part with its checksum when it is first read.

        If `checked` is True, the whole file was compared on opening, and the table compares nothing.

        name  name of its file
        rows  the array mapped from the file

        Raises `ValueError` if meta.json states no checksums of the file.
        """
        stated = self.fields.row_checksums
        if name not in stated.tables:
            raise ValueError(f"{META} states no row checksums of {name}")
        pieces = None if self.checked else stated.tables[name]
        return GuardedTable(str(self.path / name), rows, pieces, self.checksums)


def rebuild_game(arrays: Arrays, texts: Texts, guards: Guards) -> Game:
    """Return the game of a policy directory.

    arrays, texts  {file name without ending: content} of its arrays and lists of texts
    guards         meta.json, and how the mapped tables are checked

    In full-deck hold'em, validates the location tables only if `guards.checked`, and the bucket tables only if
    `guards.thorough` as well.  Raises `ValueError`, with the file's name, for arrays that are missing, do not fit each
    other or are out of range.
    """
    meta = guards.fields
    tree = _rebuild_tree(meta, arrays, texts)
    cards: Cards = no_cards(tree.players)
    if "cards_reach" in arrays:
        cards = listed = _rebuild_cards(meta, arrays, _text(texts, "cards_hand_names"))
        check_cards(listed)
    elif meta.board_cards:
        cards = _rebuild_deck(arrays, guards)
    rake = None if meta.rake is None else Rake(meta.rake.share, inf if meta.rake.cap is None else meta.rake.cap)
    game = Game(meta.name, tree, cards, meta.offset_chips, meta.big_blind_chips, meta.pot_chips, rake=rake)
    if game.buckets.tolist() != [block.buckets for block in meta.blocks]:
        raise ValueError(f"{META} does not state the buckets {game.buckets.tolist()} of its cards")
    return game


def _rebuild_tree(meta: MetaFields, arrays: Arrays, texts: Texts) -> CompiledTree:
    labels = _text(texts, "tree_label")
    nodes = (len(labels),)
    fields = [_array(arrays, f"tree_{name}", nodes, dtype) for name, dtype in _TREE_DTYPES.items()]
    names = put_in = payoffs = pots = None
    players = len(meta.blocks) // meta.streets
    if "infosets_player0" in texts:
        names = tuple(_text(texts, f"infosets_player{player}") for player in range(players))
    if "tree_put_in" in arrays:
        put_in = _array(arrays, "tree_put_in", (len(labels), players), np.dtype(np.float64))
    if players > 2 and put_in is None:
        payoffs = _array(arrays, "tree_payoffs", (len(labels), players), np.dtype(np.float64))
    elif players > 2:
        pots = _pots(arrays, len(labels), players)
    tree = CompiledTree(
        TreeArrays(*fields),
        _array(arrays, "tree_parent", nodes, np.dtype(np.int32)),
        labels,
        meta.streets,
        np.array([block.slots for block in meta.blocks], np.int64),
        np.array([block.rows for block in meta.blocks], np.int64),
        names,
        put_in,
        _text(texts, "tree_action") if "tree_action" in texts else None,
        payoffs=payoffs,
        pots=pots,
    )
    if tree.action_names is not None and len(tree.action_names) != len(labels):
        raise ValueError(f"tree_action.json has {len(tree.action_names)} names for {len(labels)} nodes")
    check_tree(tree)
    if not np.array_equal(_array(arrays, "tree_street", nodes, np.dtype(np.int8)), tree.street):
        raise ValueError("tree_street.npy contradicts tree_block.npy")
    if names is not None and [len(own) for own in names] != tree.row_count[:players].tolist():
        raise ValueError(f"the files infosets_playerP.json do not have {tree.row_count[:players]} names")
    return tree


def _pots(arrays: Arrays, nodes: int, players: int) -> Pots:
    """Return main and side pots at the terminals, for betting trees of three and more players.

    `Pots` has flat arrays of each pot's chips and the players who can win it.

    arrays   {file name without ending: array} of the policy
    nodes    number of nodes of the tree
    players  number of players

    Raises `ValueError` for a missing array, or a wrong shape or dtype; the contents are not checked here.
    """
    count = len(_present(arrays, "tree_pots_chips"))
    return Pots(
        _array(arrays, "tree_pots_first", (nodes + 1,), np.dtype(np.int32)),
        _array(arrays, "tree_pots_chips", (count,), np.dtype(np.float64)),
        _array(arrays, "tree_pots_contenders", (count,), np.dtype(np.int8)),
        _array(arrays, "tree_pots_dead", (players,), np.dtype(np.float64)),
    )


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


def _stated_table(meta: MetaFields, street: int, name: str) -> BucketTable:
    """Return meta.json's entry on a street's bucket table.

    Raises `ValueError` if it is missing or states another file than `name`.
    """
    if street >= len(meta.bucket_tables) or meta.bucket_tables[street].file != name:
        raise ValueError(f"{META} does not have {name} in its bucket_tables")
    return meta.bucket_tables[street]


def _rebuild_deck(arrays: Arrays, guards: Guards) -> MappedDeck:
    meta = guards.fields
    dealt = tuple(meta.board_cards or ())
    if len(dealt) != meta.streets or min(dealt) < 0 or any(sum(dealt[:n]) not in (0, 3, 4, 5) for n in range(1, 5)):
        raise ValueError(f"{META} has board_cards {list(dealt)}, which are not those of {meta.streets} streets")
    known = [sum(dealt[: street + 1]) for street in range(meta.streets)]
    buckets = np.array([block.buckets for block in meta.blocks], np.int64).reshape(meta.streets, -1)
    histories = _histories(arrays, buckets)
    counts = buckets.min(axis=1).tolist() if histories is None else histories.in_tables
    tables, locations = [], []
    for street, cards in enumerate(known):
        name = f"{DECK}buckets_street{street}.npy"
        stated, boards = _stated_table(meta, street, name), BOARD_COUNTS.get(cards, 1)
        starts = _array(arrays, f"{STARTS}{street}", (boards + 1,), np.dtype(np.uint32))
        streams = _array(arrays, name.removesuffix(".npy"), (int(starts[-1]),), np.dtype(np.uint8))
        guarded = guards.table(name, streams)
        table = PackedRows(guarded.file, streams, starts, COMBO_COUNT, np.dtype(stated.dtype), guarded.check)
        tables.append(table)
        name, location = f"{DECK}location_{cards}.npy", None
        if cards:
            ranks = (comb(CARD_COUNT, cards),)
            location = guards.table(name, _array(arrays, name.removesuffix(".npy"), ranks, np.dtype(np.int32)))
        locations.append(location)
        if guards.checked:
            dealt_boards = np.zeros((1, 0), np.int8) if location is None else check_location(name, location.rows, cards)
            if guards.thorough:
                file = f"{DECK}buckets_street{street}.npy"
                check_deck_buckets(file, table, dealt_boards, counts[street], stated.impossible)
    permutation = _present(arrays, f"{DECK}hole_permutation")
    check_permutations(f"{DECK}hole_permutation.npy", permutation)
    mapped = MappedTables(tables, locations, permutation, counts)
    return MappedDeck(dealt, buckets, lambda: load_tables(tables, counts, known), histories=histories, tables=mapped)


def _histories(arrays: Arrays, buckets: npt.NDArray[np.int64]) -> Histories | None:
    """Return the history tables, which give the buckets on streets with perfect recall; None without any.

    A history table is [buckets of the street before, percentiles]. It gives a hand's bucket from its bucket on the
    street before and a percentile of its strength. The street's bucket table has this percentile instead of a bucket.
    Strength is E[HS] or E[HS²]: the mean, over the cards to come, of the river equity against a random hand or of its
    square.

    arrays   {file name without ending: array} of the policy
    buckets  [S, P] number of buckets of each street and player

    Raises `ValueError` for an invalid table.
    """
    found = [arrays.get(f"{HISTORY}{street}") for street in range(len(buckets))]
    counts = buckets.max(axis=1).tolist()
    for street, history in enumerate(found):
        if history is not None:
            check_history(f"{HISTORY}{street}.npy", history, counts[street - 1] if street else 0, counts[street])
    if all(history is None for history in found):
        return None
    in_tables = [count if history is None else history.shape[1] for history, count in zip(found, counts, strict=True)]
    return Histories(tuple(in_tables), lambda: found)


def _rebuild_cards(meta: MetaFields, arrays: Arrays, names: list[str]) -> ListedCards:
    boards, parents = (
        [_present(arrays, f"cards_{name}_street{street}") for street in range(meta.streets)]
        for name in ("board_cards", "board_parent")
    )
    hand_cards, reach, strength, buckets = (
        _present(arrays, f"cards_{name}") for name in ("hand_cards", "reach", "strength", "buckets")
    )
    bucket = [_listed_buckets(meta, arrays, street) for street in range(meta.streets)]
    return ListedCards(hand_cards, names, reach, boards, parents, strength, bucket, buckets)


def _listed_buckets(meta: MetaFields, arrays: Arrays, street: int) -> npt.NDArray[Any]:
    """Return a street's buckets [players, boards, hands] int32, in a game that lists its boards.

    Impossible hands, such as those that share a card with the board, have NO_BUCKET (-1). Raises `ValueError` if the
    array is missing or has another dtype than meta.json states.
    """
    name = f"cards_bucket_street{street}"
    table, stated = _present(arrays, name), _stated_table(meta, street, f"{name}.npy")
    if table.dtype != np.dtype(stated.dtype):
        raise ValueError(f"{name}.npy is of {table.dtype}; {META} states {stated.dtype}")
    return np.where(table == stated.impossible, NO_BUCKET, table.astype(np.int64)).astype(np.int32)
