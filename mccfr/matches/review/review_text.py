"""Formats a review as text, and a decision's cost and frequencies for text and web page."""

from collections.abc import Mapping
from typing import Any

from mccfr.matches.review.hand_review import IGNORED, NO_COST

NO_ICM = "costs are chips, not prize money (no ICM)"
"""What a review says of tournaments."""
_LISTED = 3  # reasons in a text for which the review of hands ends early


def shown_cost(row: Mapping[str, Any]) -> float:
    """Return a decision's cost in big blinds for display: 0 if unknown or if its interval contains 0.

    row  the reviewed decision as a dict, as `mccfr review --json` prints it; its interval is one of 95 %
    """
    ends = row["ci95_bb"]
    return 0.0 if ends is not None and ends[0] <= 0 <= ends[1] else float(row["cost_bb"] or 0)


def shares_text(row: Mapping[str, Any]) -> str:
    """Return as text how often the policy takes each action, such as "fold 30%".

    On a street that was solved again, these are the solution's frequencies.

    row  the reviewed decision as a dict
    """
    return ", ".join(f"{name} {share:.0%}" for name, share in row["frequencies"].items())


def costliest_first(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return the sort key of a decision: by descending cost; unknown costs come after a cost of 0.

    A cost whose 95 % interval contains 0 counts as 0. Of unknown costs, the actions that the policy takes with the
    lowest probability come first.

    row  the reviewed decision as a dict
    """
    return -shown_cost(row), row["probability"] if row["cost_bb"] is None else -1.0


def review_text(record: Mapping[str, Any]) -> str:
    """Return a review as text: each player's costs by street, position and pot; worst decisions.

    record  the review as a dict, as `mccfr review --json` prints it
    """
    lines = [
        f"{record['hands']:,} hands by {record['policy']}, {record['decisions']:,} decisions; {record['refused']:,} "
        f"hands and {record['unknown']:,} decisions are not known ({record['seconds']:.3g} s)"
    ]
    if record["without_cost"]:
        lines.append(f"{record['without_cost']:,} decisions have frequencies only: {NO_COST}; {IGNORED}")
    lines += [f"{count:,} hands: {reason}" for reason, count in [*record["ended"].items()][:_LISTED]]
    if record["tournament_hands"]:
        lines.append(f"{record['tournament_hands']:,} hands are of tournaments: {NO_ICM}")
    for name, own in record["players"].items():
        lines.append(f"\n{name}, {own['hands']:,} hands, {own['decisions']:,} decisions, mbb a hand")
        for title, key in (("decisions cost", "cost"), ("won", "won"), ("won by AIVAT", "aivat")):
            if own[f"{key}_mbb"] is not None and (own["decisions"] or key != "cost"):
                ends = own[f"{key}_ci95_mbb"]
                text = "" if ends is None else f" (95 %: {ends[0]:+.5g} to {ends[1]:+.5g})"
                lines.append(f"  {title:16} {own[f'{key}_mbb']:+10.5g}{text}")
        for currency, cost in own["cost"].items():
            lines.append(f"  {'cost in ' + currency:16} {cost:10.5g}")
        for kinds in own["by"].values():
            for kind, part in kinds.items():
                lines.append(f"  {kind:16} {part['cost_mbb']:10.5g}  {part['decisions']:,} decisions")
    if record["worst"]:
        lines.append("\ncost in big blinds, in the hand's currency; hand, board, what was done and what wins most")
    return "\n".join([*lines, *map(_worst_text, record["worst"])])


def _worst_text(row: Mapping[str, Any]) -> str:
    """Return a decision as one line: its cost, the action taken, the best one, and the judging policy.

    row  the reviewed decision as a dict, with the hand's fields such as `policy` and `currency` added

    Without a cost it has the policy's action frequencies instead of the best action.
    """
    ends, other, who = row["ci95_bb"], row["other"], f"{row['player']}, {row['position']}"
    sure = "" if ends is None else f" (95 %: {ends[0]:.4g} to {ends[1]:.4g})"
    how = f"taken for {row['taken_for']}" if row["taken_for"] else row["how"]
    by = f"{row['policy']}" + (f" ({row['distance']})" if row["distance"] else "")
    beside = f"; {other['policy']}: {shown_cost(other):.4g} BB, best {other['best']}" if other and other["best"] else ""
    cost, judged = "no cost", shares_text(row)
    if row["cost_bb"] is not None:
        cost, judged = f"{shown_cost(row):.4g} BB{sure}, {row['currency']}{row['cost']:.4g}", f"best {row['best']}"
    note = f"; {row['note']}" if row["note"] not in ("", NO_COST, IGNORED) else ""
    return (
        f"{cost}  {who} {row['hand']} {row['board'] or '-'} {row['line'] or '-'}: {row['did']} "
        f"({row['probability']:.0%}), {judged}; {how}, by {by}{beside}{note}; {row['where']}"
    )
