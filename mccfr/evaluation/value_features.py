"""Features of hands from their action values under policies, for buckets with `features = "values"`.

WEVA (Li & Huang 2026) groups hands whose values were similar in the iterations of a short run. Here the iterations
are policies exported from such a run on existing buckets. A hand has one feature for each policy, decision of either
player on the street, and action. It is the hand's mean chips if both players continue by the policy: counterfactual
value divided by the weight of the opposing hands. The hand's own reach does not count. Each policy plays uniformly
with probability `EXPLORED`, so that all decisions are reached.

If many boards may follow, they are drawn. Suit-isomorphic hands then have equal features only in expectation, and
`abstraction.values` averages over them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.boards import STREET_CARDS, canonical_boards
from abstraction.build import Builder, Progress
from abstraction.listing import same_listing
from abstraction.recipe import STREETS, Recipe, load_recipe
from mccfr.cards.cards import Cards
from mccfr.cards.deals import NO_BUCKET
from mccfr.cards.dealt import Board, DealtCards
from mccfr.cards.deck import WholeDeck
from mccfr.cards.listed import ListedCards
from mccfr.evaluation.board_game import known_rows
from mccfr.policy.profile import Profile
from mccfr.policy.read import Policy, read_meta
from mccfr.solvers.public.best_response import Walk
from mccfr.solvers.public.merged_rows import in_dtype
from mccfr.solvers.public.public_tree import PublicTree, public_tree
from mccfr.tables.strategy import row_starts
from mccfr.trees.streets import AT_DECISION, AT_FOLD, AT_SHOWDOWN
from storage.manifest import content_hash

EXPLORED = 0.01
FOLLOWING = (16, 4)
"""Drawn boards of the next street for each board, and of the street after for each of these (full deck only)."""
_FAR_FROM_ZERO = 2.0**40
"""Factor on reach: products of both players' reach may be 1e-40, which underflows in float32."""
Floats = npt.NDArray[np.floating]
Cells = npt.NDArray[np.float32]


def run_outs(cards: DealtCards, street: int, boards: Sequence[Board], seed: int) -> ListedCards:
    """Return boards of a street, with their earlier boards and some later ones, as listed cards."""
    paths = [cards.path(street, board) for board in boards]
    known = [[path[here] for path in paths] for here in range(1, street + 1)]
    parents = [np.zeros(len(boards), np.int32), *[np.arange(len(boards), dtype=np.int32)] * (street - 1)]
    for here in range(street, cards.streets - 1):
        every = [cards.boards_after(here, board) for board in known[-1]]
        if cards.boards is None:
            every = [
                _drawn(after, (seed, *board), FOLLOWING[here > street])
                for board, after in zip(known[-1], every, strict=True)
            ]
        parents.append(np.repeat(np.arange(len(every), dtype=np.int32), [len(after) for after in every]))
        known.append([board for after in every for board in after])
    known.insert(0, [paths[0][0]])
    parents.insert(0, np.zeros(1, np.int32))
    rows = [
        [[cards.bucket_row(here, player, board) for board in some] for player in range(2)]
        for here, some in enumerate(known)
    ]
    return ListedCards(
        cards.hand_cards,
        [""] * cards.hand_count,
        cards.reach,
        [np.array([_cards(cards, here, board) for board in some], np.int16) for here, some in enumerate(known)],
        parents,
        np.array([cards.strengths(board) for board in known[-1]], np.int32),
        [np.array(both, np.int32) for both in rows],
        np.asarray(cards.buckets),
    )


def _drawn(boards: Sequence[Board], seed: tuple[int, ...], count: int) -> list[Board]:
    some = np.random.default_rng(seed).permutation(len(boards))[:count]
    return [boards[place] for place in np.sort(some).tolist()]


def _cards(cards: DealtCards, street: int, board: Board) -> list[int]:
    return cards.board_cards[street][board].tolist() if isinstance(cards, ListedCards) else list(board)


def street_features(side: Profile, street: int, boards: Sequence[Board], seed: int = 0) -> Cells:
    """Return [boards, H, D] mean chips of hands at the decisions of a street; 0 for impossible hands.

    D counts (player, decision, action). Walks are in float32 for the full deck, as in `board_game`. Each hand on
    each board has its own row in the street's tables.
    """
    cards, tables, _ = known_rows(side.game, side.strategy, run_outs(side.game.cards.at_table(), street, boards, seed))
    held, bucket = cards.bucket[street] != NO_BUCKET, list(cards.bucket)
    bucket[street] = np.where(held, np.cumsum(held.reshape(2, -1), axis=1).reshape(held.shape) - 1, NO_BUCKET)
    played, dtype = list[Floats](), np.float32 if side.game.cards.boards is None else np.float64
    for block, table in enumerate(tables):
        count, rows = np.diff(row_starts(side.game, block)), cards.bucket[street][block % 2][held[block % 2]]
        mixed = (1 - EXPLORED) * table + EXPLORED / np.repeat(count, count)[:, None]
        played.append((mixed.take(rows, axis=1) if block // 2 == street else mixed).astype(dtype))
    cards = replace(cards, bucket=[numbers.astype(np.int32) for numbers in bucket])
    public = in_dtype(public_tree(replace(side.game, cards=cards), some=True), dtype)
    public = public._replace(reach=public.reach * dtype(_FAR_FROM_ZERO))
    found = []
    for player in range(2):
        won = _choices(public, played, street, player)
        arrived = _choices(_arrivals(public, street, player), played, street, player)
        out = np.zeros((*held[player].shape, len(won)), np.float32)
        out[held[player]] = np.divide(won, arrived, out=np.zeros_like(won), where=arrived > 0).T
        found.append(out)
    return np.concatenate(found, axis=2)


def _arrivals(public: PublicTree, street: int, player: int) -> PublicTree:
    """Return the tree in which each leaf of a street pays the player 1 chip.

    Values in it are the weight of the opposing hands, which normalises `_choices`.
    """
    trees = public.trees
    here = np.repeat(trees.street, np.diff(trees.first)) == street
    ends = np.isin(trees.kind, (AT_FOLD, AT_SHOWDOWN)) | (here & (trees.kind != AT_DECISION))
    kind, chips = np.where(ends, AT_FOLD, trees.kind).astype(np.int8), np.where(ends, 1.0 - 2.0 * player, 0.0)
    return public._replace(trees=trees._replace(kind=kind, chips=np.stack([chips, np.zeros_like(chips)], axis=1)))


def _choices(public: PublicTree, tables: Sequence[Floats], street: int, player: int) -> Floats:
    """Return [slots, cells] chips of a player's hands by each action of a street, times their reach."""
    own, kept = 2 * street + player, [np.zeros((0, 0), table.dtype) for table in tables]
    for block in (player, own):  # the walk tracks the player's range only if the first street has choices too
        kept[block] = np.zeros((2 * len(tables[block]), tables[block].shape[1]), tables[block].dtype)
    Walk(public, tables, choices=kept).values(player)
    return kept[own][: len(tables[own])]


class ProfileValues:
    """`abstraction.values.ValueSource` from policies: columns of `street_features` of all policies."""

    def __init__(self, recipe: Recipe, identity: str, sides: Callable[[], Sequence[Profile]]) -> None:
        """Take a function that opens the policies (of the recipe's deck) when needed, and their hash."""
        self._recipe, self.identity, self._open, self._lock = recipe, identity, sides, Lock()
        self._sides: Sequence[Profile] | None = None

    def _opened(self) -> Sequence[Profile]:
        """Return the policies, opened once."""
        with self._lock:
            self._sides = sides = self._sides or self._open()
        return sides

    def check(self, streets: Sequence[str]) -> None:
        """Raise `ValueError` for policies that cannot be opened, have other cards, or no decision on a street."""
        for street in streets:
            if not any(side.game.tree.row_slots[2 * STREETS.index(street) :][:2].any() for side in self._opened()):
                raise ValueError(
                    f"values: nobody decides on the {street} in the policies: name one where somebody does"
                )

    def __call__(self, street: str, boards: npt.NDArray[np.int64]) -> Cells:
        """Return the features of a street's boards, with the columns of all policies side by side."""
        sides = self._opened()
        here, known = STREETS.index(street), boards.tolist()
        if self._recipe.deck is None:
            known = [tuple(board) for board in canonical_boards(STREET_CARDS[street])[boards].tolist()]
        return np.concatenate([street_features(side, here, known, self._recipe.seed) for side in sides], axis=2)


def policy_values(recipe: Recipe, base: Path) -> ProfileValues | None:
    """Return features from the policies in `recipe.values`, relative to `base`; None if there are none.

    Raises as `Policy.open`, and `ValueError` when a policy with other cards than the recipe's is opened.
    """
    paths = [base / name for name in recipe.values]

    def identity_of(metas: Iterable[Mapping[str, Any]]) -> str:
        return content_hash({"worth": 1, "files": [meta["files"] for meta in metas]})

    identity = identity_of(map(read_meta, paths))

    def opened() -> list[Profile]:
        policies = [Policy.open(path) for path in paths]
        if identity_of(policy.meta for policy in policies) != identity:
            raise ValueError(
                f"values: {', '.join(map(str, paths))}: a policy was exported again meanwhile: run the command again"
            )
        for path, policy in zip(paths, policies, strict=True):
            if not _of_deck(policy.game.cards, recipe):
                deck = "hold'em" if recipe.deck is None else "the recipe's [deck]"
                raise ValueError(f"values: {path} is a policy of other cards than {deck}: name one of the same cards")
        return [Profile(policy.game, policy.strategy()) for policy in policies]

    return ProfileValues(recipe, identity, opened) if paths else None


def _of_deck(cards: Cards, recipe: Recipe) -> bool:
    if recipe.deck is None:
        return isinstance(cards, WholeDeck) and tuple(cards.board_cards) == (0, 3, 1, 1)
    return isinstance(cards, ListedCards) and same_listing(recipe.deck.listing(), cards.hand_cards, cards.board_cards)


def builder(recipe: Path, out: Path, workers: int = 1, progress: Progress | None = None) -> Builder:
    """Return a builder of a recipe file's abstraction, with features from the policies that it names."""
    loaded = load_recipe(recipe)
    return Builder(loaded, out, workers, progress, values=policy_values(loaded, recipe.parent))
