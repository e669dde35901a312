"""Describes the training that an exported strategy is from, as text from its provenance."""

from collections.abc import Mapping
from typing import Any


def plain_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a configuration's table in which infinite values are text, as JSON needs."""
    return {
        key: str(value) if isinstance(value, float) and abs(value) == float("inf") else value
        for key, value in table.items()
    }


def unfinished_text(origin: Mapping[str, Any]) -> str:
    """Return a text such as "unfinished: 40 % of its run" if the run was exported before its end; else "".

    origin  the export's provenance. Its field `share_of_run` is the part of the planned training that was done, from 0
            to 1; without it the result is "". If its field `running` is true, the text ends ", which was still going"
    """
    share = origin.get("share_of_run")
    if share is None or share >= 1:
        return ""
    return f"unfinished: {100 * share:.2g} % of its run" + ", which was still going" * bool(origin.get("running"))


def origin_facts(origin: Mapping[str, Any]) -> list[str]:
    """Return texts on an export's origin: training, checkpoint, evaluations, program and license.

    origin  the export's provenance. Texts for missing fields are left out. The license follows the program, and is
            "not stated" if only the program is known

    A text on an unfinished run comes first.
    """
    found = [text for text in [unfinished_text(origin)] if text]
    nodes, seconds = (origin.get(key) for key in ("nodes_touched", "training_seconds"))
    if nodes is not None:
        found.append(f"{nodes:,} nodes touched" + ("" if seconds is None else f" in {seconds:,.0f} s of training"))
    if (number := origin.get("checkpoint")) is not None:
        found.append(f"checkpoint {number}")
    found += [_evaluation_text(record) for record in origin.get("evaluations", ())]
    if program := origin.get("program"):
        found += [str(program), f"license of the data: {origin.get('license') or 'not stated'}"]
    return found


def _evaluation_text(record: Mapping[str, Any]) -> str:
    """Return an evaluation as text: its method, one figure, and its kind, such as lower bound.

    record  an evaluation in the provenance of an export

    The figure is the largest gain of one player's response in chips a game, if there is one. Otherwise it is the
    exploitability in mbb a game (chips if it has no mbb), or the chips won a game against an opponent.
    """
    bound, figure = record["bound"], f"wins {record['value_chips']:.4g} chips a game against {record.get('against')}"
    for unit in ("chips", "mbb"):
        if (found := record.get(f"exploitability_{unit}")) is not None:
            figure = f"exploitability {found:.4g} {unit} a game"
    if gains := record.get("gains_chips"):
        figure = f"responses of one player gain up to {max(gains):.4g} chips a game"
    return f"{record['method']}: {figure} ({bound + ' bound' * (bound in ('lower', 'upper'))})"
