"""Writes a strategy as CSV or Parquet, with one row for each infoset and action."""

import csv
import importlib
import io
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from abstraction.cards import plain_text
from mccfr.games.game import Game
from mccfr.policy.export.explanation import COLUMN_MEANINGS, UNITS
from mccfr.policy.overwrite import provenance_in
from mccfr.policy.strategy_profile import Profile
from mccfr.trees.betting_lines import all_lines
from storage import durable
from storage.atomic_outputs import begins_with, output
from storage.json_files import parse_json
from storage.manifest import canonical_json

COLUMNS = ("line", "street", "player", "hand", "board", "action", "probability", "weight", "infoset")
_ROWS_AT_ONCE = 1 << 16
_BUCKETS_AT_ONCE = 1 << 12
_HEADER = (",".join(COLUMNS) + "\n").encode()
_PARQUET_MAGIC, _DESCRIPTION = b"PAR1", b"mccfr"

Row = tuple[str, int, int, str, str, str, float, float, str]


def strategy_rows(source: Profile, board: str | None = None) -> Iterator[Row]:
    """Yield one row for each possible infoset and each of its actions, in the order of nodes.

    The columns are line, street, player, hand, board, action, probability, weight, infoset.  `line` is the betting
    before the decision, `weight` the infoset's accumulated weight (0: never reached).  If an infoset holds several
    isomorphic hands, `hand` and `board` are the first of them. In full-deck hold'em `hand` is a class of hole cards or
    the name of the bucket.  In trees where players do not see all moves, `line` is the action sequence of the infoset's
    first node and `infoset` its name, else "".  `street` counts from 0 at the root.

    source  the strategy and its game
    board   give a row for each hand on this board instead ("" for no board), and on its first cards for earlier streets

    Raises `ValueError`, at the first row, for an invalid board.
    """
    game, tree = source.game, source.game.tree
    arrays, cards = tree.arrays, game.cards
    blocks = [divmod(block, tree.players) for block in range(len(tree.row_slots))]
    texts = [cards.bucket_texts(*block) for block in blocks] if board is None else _hands_on(game, board)
    seen: set[tuple[int, int]] = set()
    lines = all_lines(tree)
    for node in tree.decisions.tolist():
        block, row = int(arrays.block[node]), int(arrays.row[node])
        if (block, row) in seen:
            continue
        seen.add((block, row))
        street, player = divmod(block, tree.players)
        line, labels = lines[node], [tree.label[child] for child in tree.children(node)]
        name = tree.infoset_names[player][row] if tree.infoset_names is not None and not cards.dealt else ""
        for first in range(0, len(texts[block]), _BUCKETS_AT_ONCE):
            here = texts[block][first : first + _BUCKETS_AT_ONCE]
            shares, weights = source.rows(node, np.array([bucket for bucket, _, _ in here]))
            for (_, hand, dealt), played, weight in zip(here, shares.tolist(), weights.tolist(), strict=True):
                for label, probability in zip(labels, played, strict=True):
                    yield line, street, player, hand, dealt, label, probability, weight, name


def _hands_on(game: Game, board: str) -> list[list[tuple[int, str, str]]]:
    """Return for each street and player a list of (bucket, hand, board), for every hand on `board`.

    Hand and board are texts. The board of an earlier street is the first cards of `board`; lists of later streets are
    empty.  Raises `ValueError` if no street of the game has a board of this length.
    """
    cards, text, found = game.cards, plain_text(board), list[list[tuple[int, str, str]]]()
    counts = [cards.cards_on(street) for street in range(game.tree.streets)]
    if not cards.dealt or len(text) not in [2 * count for count in counts]:
        allowed = ", ".join(map(str, sorted(set(counts))))
        raise ValueError(
            f"board {board!r} is none of {game.name}: boards there have {allowed} cards, written as Kc7d2s"
        )
    for street, count in enumerate(counts):
        here = text[: 2 * count]
        for player in range(game.tree.players):
            hands = cards.hand_buckets(street, player, here or None) if len(here) == 2 * count else {}
            found.append([(bucket, hand, here) for hand, bucket in hands.items()])
    return found


def csv_provenance(path: Path) -> Mapping[str, Any] | None:
    """Return {} for a CSV file that `write_csv` wrote, and None for any other file.

    A provenance states the run and checkpoint that an export is from. A CSV file has none, so its provenance is empty.
    """
    return {} if begins_with(_HEADER)(path) else None


def write_csv(out: Path, source: Profile, board: str | None, replaceable: Callable[[Path], bool]) -> None:
    """Write `strategy_rows` as CSV (UTF-8, with a header line), in batches of 65,536 rows.

    source       the strategy and its game
    board        write a row for each hand on this board ("" for no board); None: a row for each bucket
    replaceable  takes a path at which something exists, and returns whether it may be replaced

    Raises `ValueError` for an invalid board, and `FileExistsError` if `out` may not be replaced.
    """

    def pieces() -> Iterator[bytes]:
        yield _HEADER
        rows = strategy_rows(source, board)
        while batch := list(islice(rows, _ROWS_AT_ONCE)):
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows(batch)
            yield text.getvalue().encode()

    with output(out, replaceable) as temporary:
        durable.write_file(temporary, pieces())


def _pyarrow() -> tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise ValueError("export format 'parquet' needs pyarrow: run tools/bootstrap parquet in the clone") from None


def parquet_provenance(path: Path) -> Mapping[str, Any] | None:
    """Return the provenance in a file of `write_parquet`: the run and checkpoint that it is from.

    Returns {} if the file states none, and None for another file. Raises `ValueError` for a Parquet file if pyarrow is
    missing.
    """
    if not begins_with(_PARQUET_MAGIC)(path):
        return None
    arrow, parquet = _pyarrow()
    try:
        schema = parquet.read_schema(path)
        if schema.names != list(COLUMNS):
            return None
        return provenance_in(parse_json((schema.metadata or {}).get(_DESCRIPTION, b"{}"), path))
    except (arrow.ArrowException, ValueError):
        return None


def write_parquet(
    out: Path, source: Profile, board: str | None, description: Mapping[str, Any], replaceable: Callable[[Path], bool]
) -> None:
    """Write `strategy_rows` as Parquet, with a description as JSON in the metadata key `mccfr`.

    source       the strategy and its game
    board        write a row for each hand on this board ("" for no board); None: a row for each bucket
    description  game and provenance as JSON; the meaning of the columns is added to it
    replaceable  takes a path at which something exists, and returns whether it may be replaced

    Raises `ValueError` without pyarrow and for an invalid board, `FileExistsError` if `out` may not be replaced.
    """
    arrow, parquet = _pyarrow()
    kinds = {
        "street": arrow.int32(),
        "player": arrow.int32(),
        "probability": arrow.float64(),
        "weight": arrow.float64(),
    }
    schema = arrow.schema(
        [(name, kinds.get(name, arrow.string())) for name in COLUMNS],
        metadata={_DESCRIPTION: canonical_json({**description, "columns": COLUMN_MEANINGS, "units": UNITS})},
    )
    with output(out, replaceable) as temporary:
        with parquet.ParquetWriter(temporary, schema) as writer:
            rows = strategy_rows(source, board)
            while batch := list(islice(rows, _ROWS_AT_ONCE)):
                writer.write_table(_arrow_table(arrow, schema, batch))
        durable.adopt_file(temporary)


def _arrow_table(arrow: Any, schema: Any, batch: list[Row]) -> Any:
    return arrow.table([list(column) for column in zip(*batch, strict=True)], schema=schema)
