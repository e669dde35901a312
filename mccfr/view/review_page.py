"""Shows a review of hands: the output of `mccfr review --keep`, with decisions sorted by their cost."""

from pathlib import Path
from typing import Any

from mccfr.matches.review.review_files import STREETS, read_review
from mccfr.view.spot_view import Spots

MOST_ROWS = 200
"""Maximum number of decisions in an answer."""


class Reviews:
    """The decisions of a review made with the strategy that is shown."""

    def __init__(self, path: Path, spots: Spots) -> None:
        """Raises as `read_review`."""
        hands = read_review(path, spots.source)
        rows = [{"where": hand["where"], **row} for hand in hands for row in hand["decisions"]]
        rows.sort(key=lambda row: -row["cost_chips"])
        self._rows = [{"place": place, **row} for place, row in enumerate(rows)]
        self._spots, self._title, self._hands = spots, path.name, len(hands)
        self._players = sorted({row["player"] for row in rows})

    def decisions(self, street: str = "", player: str = "") -> dict[str, Any]:
        """Return the costliest decisions, at most `MOST_ROWS`, of a `street` and a `player`; "" takes all.

        `decisions` and `cost_chips` count all selected decisions.  A row has the fields of `mccfr review --keep`, its
        `place` among all, and the actions `did` and `better` in words.
        """
        rows = [row for row in self._rows if street in ("", row["street"]) and player in ("", row["player"])]
        shown_rows = []
        for row in rows[:MOST_ROWS]:
            did, better = self._spots.named(row["line"], [row["action"], row["best"]])
            shown_rows.append({**row, "did": did, "better": better})
        return {
            "title": self._title,
            "hands": self._hands,
            "players": self._players,
            "streets": [street for street in STREETS if any(row["street"] == street for row in self._rows)],
            "decisions": len(rows),
            "cost_chips": sum(row["cost_chips"] for row in rows),
            "rows": shown_rows,
        }
