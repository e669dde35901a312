"""Writes a run's or policy's strategy as one HTML file that works offline.

The file contains styles and scripts as text, drawings as SVG and numbers as JSON.  Texts from files or names are
escaped.  A size limit keeps the decisions with the largest reach.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from mccfr import __version__
from mccfr.cards.grid import make_grid
from mccfr.evaluation.curve_svg import curve_svg
from mccfr.games.game import Game
from mccfr.report.average_differences import averages_section
from mccfr.report.decisions import SCALE, decision_views, hand_lists
from mccfr.report.page_assets import script, style
from mccfr.report.report_boards import ShownCards, shown_cards
from mccfr.runs.directory.run import CONFIG, EVALUATIONS, Run, is_run, open_run
from mccfr.runs.directory.trends import TRENDS
from mccfr.runs.results.average_strategies import checkpoint_average
from mccfr.runs.results.checkpoints import read_checkpoint
from mccfr.runs.results.targets import Reference, open_target
from mccfr.solvers.deep.network_strategy import is_unlisted
from mccfr.tables.strategy import Strategy
from storage import durable
from storage.atomic_outputs import check_output, contains, output
from storage.checkpoint import Checkpoint
from storage.json_files import read_bounded

LIMIT_BYTES = 6_000_000
BOARDS = 6

GENERATOR = '<meta name="generator" content="mccfr report">'
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
is_report = contains(GENERATOR.encode(), 1000)
"""Returns whether a file is an earlier report, which may be replaced."""


def write_report(
    directory: Path,
    out: Path,
    *,
    checkpoint: int | None = None,
    boards: Sequence[str] = (),
    board_count: int = BOARDS,
    limit_bytes: int = LIMIT_BYTES,
    abstraction: Path | None = None,
) -> dict[str, int]:
    """Write the report of a run or a policy to the file `out`, in one step.

    directory    of the run or policy
    checkpoint   number of the run's checkpoint; None: the newest
    boards       boards as text; none: up to `board_count` of each later street, evenly spaced (whole hold'em: none)
    limit_bytes  approximate limit of the decisions' size; the first one is always written
    abstraction  path of the run's card abstraction, if it was moved

    Returns counts: `decisions`, `boards`, `boards_left_out`, `complete` (0 if decisions on these boards were left out)
    and `bytes`.  There are no decisions for networks with too many infosets for a table.

    Raises `ValueError` for another directory, a run without checkpoint, a game without cards and an invalid board.
    Raises `FileExistsError` if `out` is not an earlier report.
    """
    check_output(out, is_report)
    counts = {"decisions": 0, "boards": 0, "boards_left_out": 0, "complete": 1}
    name, asked = directory.resolve().name, Reference(directory, checkpoint, abstraction)
    run = open_run(directory, abstraction) if is_run(directory) else None
    strategy: Strategy | None
    if run is None:
        target = open_target(asked)
        game, strategy, text = target.game, target.strategy, _Text(name, target.game, target.counts)
    else:
        game = run.build_game()
        text, strategy = read_checkpoint(run, checkpoint, partial(_parts_of_run, run, game))
    if strategy is None:
        shown = _unlisted(game, boards)
    else:
        cards = shown_cards(game, boards, board_count)
        views, cut = decision_views(game, strategy, cards, limit_bytes)
        counts = {"decisions": len(views), "boards": len(cards.boards), "boards_left_out": cards.left_out}
        counts["complete"] = int(not cut)
        shown = _shown(_data(game, cards, views), _left_out(cards, cut))
    written = _page(text, shown).encode()
    with output(out, is_report) as temporary:
        durable.write_file(temporary, written)
    return counts | {"bytes": len(written)}


def _data(game: Game, cards: ShownCards, views: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data for the report's script."""
    grid = make_grid(cards.hand_cards, cards.names)
    return {
        "scale": SCALE,
        "names": list(cards.names),
        "players": [f"Player {player} ({role})" for player, role in enumerate(game.roles)],
        "rows": grid.rows,
        "columns": grid.columns,
        "label": list(grid.label),
        "cell": grid.cell.tolist(),
        "boards": [{"name": b.name, "street": b.street_name, "parent": b.parent} for b in cards.boards],
        "hands": hand_lists(cards),
        "views": views,
        "above": _above(cards, views),
        "first": next(iter(views)),
    }


def _above(cards: ShownCards, views: Mapping[str, Any]) -> dict[str, str]:
    """Return the key of each decision's parent, by key."""
    found = {}
    for key, view in views.items():
        board = view["board"]
        for action in view["actions"]:
            children = [f"{action['next']}.{board}"]
            children += [f"{action['next']}.{n}" for n, other in enumerate(cards.boards) if other.parent == board]
            found.update({child: key for child in children if child in views})
    return found


def script_json(value: Any) -> str:
    """Return JSON for a script element, with characters escaped that could end it or begin a comment."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _left_out(cards: ShownCards, cut: bool) -> str:
    text = "Some of the decisions are left out for the sake of the file's size. " if cut else ""
    return text + (f"{cards.left_out:,} more boards are not in this file. " if cards.left_out else "")


class _StrategyParts(NamedTuple):
    """HTML of the strategy, and of the scripts that fill it in."""

    strategy: str
    scripts: str


def _unlisted(game: Game, boards: Sequence[str]) -> _StrategyParts:
    """Return the HTML for a strategy with too many infosets for a table."""
    infosets = f"{int(game.infosets.sum()):,} infosets"
    if boards:
        raise ValueError(
            f"the average strategy is one of networks over {infosets}, too many to be listed, so that no board can be "
            "shown: leave out --board, and ask `mccfr query` for hands on it"
        )
    return _StrategyParts(
        f"<p>It is one of networks over {infosets}, too many to be listed here: <code>mccfr query</code> answers for "
        "any line, board and hand.</p>",
        "",
    )


def _shown(data: Mapping[str, Any], left_out: str) -> _StrategyParts:
    """Return the HTML of the strategy's decisions, which a script shows."""
    return _StrategyParts(
        f"""<noscript><p>The strategy is shown by a script inside this file: allow scripts to see it.</p></noscript>
<p id="who"></p>
<p id="boards"></p>
<div id="line"></div>
<div id="strategy">
<div><div id="grid" class="grid"></div></div>
<div><div id="actions"></div><div id="hands"></div></div>
</div>
<p class="quiet">A cell is filled as far as its hands come to this decision, of those that come most; widths are
probabilities of actions. Reach is the share of a hand's weight that comes here, of the largest weight in the player's
range. Actions at the side are means over the range. {escape(left_out)}</p>""",
        f"""<script type="application/json" id="data">{script_json(data)}</script>
<script>{script()}</script>
""",
    )


class _Text(NamedTuple):
    """Parts of the page beside the strategy; those that only a run has are empty for a policy.

    counts   nodes touched, iterations, and number of the checkpoint
    results  HTML of evaluations; "" if there are none
    facts    further rows of the table of facts
    config   text of the run's configuration
    """

    name: str
    game: Game
    counts: Mapping[str, Any]
    headline: str = ""
    results: str = ""
    facts: Mapping[str, str] = MappingProxyType({})
    config: str = ""


def _parts_of_run(run: Run, game: Game, checkpoint: Checkpoint) -> tuple[_Text, Strategy | None]:
    """Return a checkpoint's page parts and its strategy, None for too many infosets for a table."""
    unlisted = run.algorithm.averages.keeps_networks and is_unlisted(game)
    strategy = None if unlisted else checkpoint_average(game, run.config, checkpoint)
    return _text_of_run(run, game, checkpoint), strategy


def _text_of_run(run: Run, game: Game, checkpoint: Checkpoint) -> _Text:
    state = checkpoint.state
    records = [r for r in run.read(EVALUATIONS) if r["nodes_touched"] <= state["nodes_touched"]]
    results = f"""{_curves(records, run.algorithm.traits.axis)}
<details><summary>Evaluations</summary>{_evaluations(records)}</details>
{averages_section(run, game, checkpoint)}
"""
    facts = {
        "algorithm": run.algorithm.name,
        "training time": f"{state['training_seconds']:,.1f} s",
        "identity": str(run.manifest["identity"]),
        **_saturated(run, checkpoint),
        "made by": str(run.manifest["created_by"]) + f", report by mccfr {__version__}",
    }
    return _Text(
        run.directory.resolve().name,
        game,
        {**state, "checkpoint": checkpoint.number},
        f"{run.algorithm.name}, {_headline(state, records)}",
        results,
        facts,
        read_bounded(run.path(CONFIG)).decode(),
    )


def _page(text: _Text, shown: _StrategyParts) -> str:
    title = escape(f"{text.game.name}: {text.name}")
    config = f"<details><summary>Configuration</summary><pre>{escape(text.config)}</pre></details>\n"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
{GENERATOR}
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style()}</style>
</head>
<body>
<h1>{title}</h1>
<p class="quiet">{escape(text.headline or _headline(text.counts, []))}</p>
<h2>Strategy</h2>
{shown.strategy}
{text.results}<h2>{"Run" if text.config else "Policy"}</h2>
{_facts(text)}
{config if text.config else ""}{shown.scripts}</body>
</html>
"""


def _headline(counts: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> str:
    text = f"{_count(counts['iterations'])} iterations, {_count(counts['nodes_touched'])} nodes touched"
    newest = [figures[-1] for figures in _by_figure(records) if figures[-1]["exploitability_chips"] is not None]
    if not newest:
        return text
    exact = [record for record in newest if record["bound"] == "exact"]
    last = exact[0] if exact else max(newest, key=lambda record: float(record["exploitability_chips"]))
    mbb = last["exploitability_mbb"]
    size = f"{last['exploitability_chips']:.6g} chips" + ("" if mbb is None else f" = {mbb:.6g} mbb/g")
    least = "" if exact else "at least "
    return f"{text}; exploitability {least}{size} at {last['iterations']:,} iterations"


_ORDER = {"exact": 0, "lower": 1}


def _by_figure(records: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Return records grouped by method and setting: exact ones first, then bounds, then winnings."""
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for record in records:
        kind = record["method"], record.get("from"), record.get("setting")
        found.setdefault(kind, []).append(record)
    return sorted(found.values(), key=lambda some: _ORDER.get(some[-1]["bound"], 2) if _bounds(some) else 2)


def _bounds(records: Sequence[Mapping[str, Any]]) -> bool:
    return records[-1].get("bound") in ("exact", "lower")


def _curves(records: Sequence[Mapping[str, Any]], axis: str) -> str:
    """Return the HTML of a curve for each group of records."""
    return "\n".join(_curve(figures, axis) for figures in _by_figure(records)) or _curve([], axis)


def _curve(records: Sequence[Mapping[str, Any]], axis: str) -> str:
    """Return the HTML of a curve with its heading.

    Winnings against an opponent get another heading, because they measure no convergence.
    """
    drawn = curve_svg(records, axis) or '<p class="quiet">Nothing has been evaluated.</p>'
    opponent = records[-1].get("against") if records else None
    if opponent is None:
        return f"<h2>{escape(_figure_text(records))}</h2>\n{drawn}"
    return f"""<h2>Won from {escape(opponent)}</h2>
{drawn}
<p class="quiet">Chips a hand, from this one opponent. It measures neither exploitability nor convergence: a strategy
that comes nearer to an equilibrium may win less from a weak opponent than one that happens to exploit it.</p>"""


def _figure_text(records: Sequence[Mapping[str, Any]]) -> str:
    """Return the heading of a group of records."""
    last = records[-1] if records else {"bound": "exact", "method": "exact"}
    if last.get("bound") != "lower":
        return f"Exploitability, {last['method']}" if last["method"] == "abstract" else "Exploitability"
    where = f" from {last['from']}" if last.get("from") is not None else ""
    where += f", setting {last['setting']}" if last.get("setting") is not None else ""
    return f"Exploitability at the least: {last['method']}{where}"


def _evaluations(records: Sequence[Mapping[str, Any]]) -> str:
    """Return all evaluations as an HTML table without empty columns."""
    columns: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "iterations": lambda record: f"{record['iterations']:,}",
        "nodes touched": lambda record: f"{record['nodes_touched']:,}",
        "exploitability (chips)": lambda record: _number(record["exploitability_chips"]),
        "exploitability (mbb/g)": lambda record: _number(record["exploitability_mbb"]),
        "by": lambda record: _figure_text([record]) if record.get("bound") == "lower" else "",
        "value (chips)": lambda record: "" if record.get("against") else _number(record["value_chips"]),
        "won (chips a hand)": lambda record: _number(record["value_chips"]) if record.get("against") else "",
        "95 %": lambda record: " to ".join(_number(end) for end in record.get("ci95_chips") or ()),
        "against": lambda record: record.get("against") or "",
        "gained on the same boards": lambda record: _number(record.get("gain_chips")),
        "loss": lambda record: _pair(record.get("loss")),
        "explained share of the targets' mean square": lambda record: _pair(record.get("explained")),
        "samples": lambda record: _pair(record.get("samples")),
        "networks": lambda record: _pair(record.get("networks")),
        "95 % of that": lambda record: " to ".join(_number(end) for end in record.get("gain_ci95_chips") or ()),
    }
    cells = {name: [text(record) for record in records] for name, text in columns.items()}
    shown = {name: texts for name, texts in cells.items() if any(texts)}
    lines = ["".join(f"<th>{escape(name)}</th>" for name in shown)]
    lines += ["".join(f"<td>{escape(text)}</td>" for text in row) for row in zip(*shown.values(), strict=True)]
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.8g}"


def _pair(values: Sequence[float] | None) -> str:
    """Return the values of both players as text; "" for None."""
    return "" if values is None else ", ".join(f"{value:,.4g}" if value % 1 else f"{value:,.0f}" for value in values)


def _saturated(run: Run, checkpoint: Checkpoint) -> dict[str, str]:
    """Return the number of saturated cells of 16-bit tables as a fact; {} for other tables."""
    line = next((line for line in run.backwards(TRENDS) if line["checkpoint"] == checkpoint.number), {})
    count = line.get("saturated_cells")
    return {} if count is None else {"saturated 16-bit cells": f"{count:,}"}


def _count(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _facts(text: _Text) -> str:
    game, counts = text.game, text.game.counts()
    facts = {
        "game": game.name,
        "decisions of the betting": f"{counts['decision_nodes']:,} (of {counts['nodes']:,} nodes)",
        "infosets": f"{counts['infosets']:,}",
        "pot at the start": f"{game.pot_chips:,.10g} chips",
        "big blind": "none" if game.big_blind_chips is None else f"{game.big_blind_chips:,.10g} chips",
        "iterations": _count(text.counts["iterations"]),
        "nodes touched": _count(text.counts["nodes_touched"]),
        "checkpoint": _count(text.counts["checkpoint"]),
        **text.facts,
    }
    lines = [f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in facts.items()]
    return f'<table class="facts">{"".join(lines)}</table>'
