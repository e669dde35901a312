"""Shows a review: played hands whose decisions a strategy has judged, sorted by their EV loss.

The command `mccfr review --keep FILE` writes the file of a review.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mccfr.matches.review.hand_review import IGNORED, MAPPED, NO_COST, SOLVED
from mccfr.matches.review.review_files import STREETS, read_review
from mccfr.matches.review.review_text import NO_ICM, costliest_first, shares_text, shown_cost
from mccfr.view.spot_view import Spots

MOST_ROWS = 200
"""Maximum number of decisions in an answer."""
_HOW = {SOLVED: "The street was solved again with the bets that were made", MAPPED: "Taken for {taken_for}"}


def _source_text(hand: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return sentences on how a decision of a played hand was judged, each preceded by a space.

    hand, row  the fields of a hand and of one of its decisions, from a file of `mccfr review --keep`
    """
    sentences = [_HOW.get(row["how"], "").format(**row)]
    if hand["distance"]:
        sentences.append(f"By {hand['policy']}: {hand['distance']} (hand for policy, in BB)")
    if (other := row["other"]) and other["best"]:
        sentences.append(f"By {other['policy']}: best {other['best']}, {other['cost_bb']:.2f} BB")
    return "".join(f" {each}." for each in [*sentences, row["note"], hand["ended"]] if each)


class Reviews:
    """The reviewed decisions of hands, judged by the strategy that is shown and possibly by others."""

    def __init__(self, path: Path, spots: Spots) -> None:
        """Read the file of a review, which `mccfr review --keep` has written.

        spots  the strategy that is shown

        Raises `FileNotFoundError`, and `UnreadableError` if the system cannot read the file. Raises `ValueError` if it
        holds no review, or one by other strategies only.
        """
        hands, name = read_review(path, spots.source)
        rows = [
            {key: hand[key] for key in ("where", "policy", "distance", "currency", "tournament", "ended")}
            | {**row, "shown_bb": shown_cost(row), "link": row["link"] if hand["policy"] == name else ""}
            | {"shares": shares_text(row), "source": _source_text(hand, row)}
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
        """Return the costliest decisions, at most 200, of a `street` and a `player`; "" takes all.

        The answer describes the file by `title`, number of `hands`, `players`, `streets`, and `note` (review's limits).
        `decisions` is the number and `cost_bb` the total known EV loss of all selected decisions, in big blinds. Each
        of the `rows` has the fields of a decision in the review's file, and:

        place     rank by EV loss among all decisions of the file, 0 is the costliest
        shown_bb  EV loss in big blinds; 0 if it is unknown or its 95 % interval contains 0
        shares    frequencies of the actions as text
        source    sentences on how the decision was judged, and on another policy's judgement
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
