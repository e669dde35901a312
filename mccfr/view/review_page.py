"""Shows a review of hands: the output of `mccfr review --keep`, with decisions sorted by their cost."""

from pathlib import Path
from typing import Any

from mccfr.matches.review.hand_review import IGNORED, NO_COST
from mccfr.matches.review.review_files import NO_ICM, STREETS, costliest_first, read_review, shown_cost
from mccfr.view.spot_view import Spots

MOST_ROWS = 200
"""Maximum number of decisions in an answer."""


class Reviews:
    """The decisions of a review made with the strategy that is shown, and perhaps with others beside it."""

    def __init__(self, path: Path, spots: Spots) -> None:
        """Raises as `read_review`."""
        hands, name = read_review(path, spots.source)
        rows = [
            {key: hand[key] for key in ("where", "policy", "distance", "currency", "tournament", "ended")}
            | {**row, "shown_bb": shown_cost(row), "link": row["link"] if hand["policy"] == name else ""}
            for hand in hands
            for row in hand["decisions"]
        ]
        rows.sort(key=costliest_first)
        self._rows = [{"place": place, **row} for place, row in enumerate(rows)]
        self._title, self._hands = path.name, len(hands)
        notes = {f"Tournaments: {NO_ICM}.": any(hand["tournament"] for hand in hands)}
        notes[f"At a table of three and more players {NO_COST}, and {IGNORED}."] = any(
            row["cost_bb"] is None for row in rows
        )
        self._note = " ".join(note for note, applies in notes.items() if applies)
        self._players = sorted({row["player"] for row in rows})

    def decisions(self, street: str = "", player: str = "") -> dict[str, Any]:
        """Return the costliest decisions, at most `MOST_ROWS`, of a `street` and a `player`; "" takes all.

        `decisions` and `cost_bb` count all selected decisions, with estimates as they are. A row has the fields of
        `mccfr review --keep`, its `place` among all, and `shown_bb`: 0 where the interval contains 0.
        """
        rows = [row for row in self._rows if street in ("", row["street"]) and player in ("", row["player"])]
        return {
            "title": self._title,
            "hands": self._hands,
            "note": self._note,
            "players": self._players,
            "streets": [street for street in STREETS if any(row["street"] == street for row in self._rows)],
            "decisions": len(rows),
            "cost_bb": sum(row["cost_bb"] or 0 for row in rows),
            "rows": rows[:MOST_ROWS],
        }
