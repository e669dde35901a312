"""Shows the first decision of a policy in a notebook, as an HTML table without script or style sheet."""

from collections.abc import Sequence
from html import escape

import numpy as np

from mccfr.cards.grid import make_grid
from mccfr.policy.strategy_profile import Behaviour

_FOLD, _CALL, _RAISES = "#6a9ed4", "#6bb77f", ("#f0a184", "#e2725b", "#c9473f", "#a22c33", "#761d33")


def first_decision_html(source: Behaviour, title: str) -> str:
    """Return the first decision as HTML: one cell for each hand class, coloured by action probabilities.

    The probabilities of a class are the mean over its hands.  Raises `ValueError` for games without cards, or with
    several boards at the first decision.
    """
    game, tree = source.game, source.game.tree
    player, labels = int(tree.arrays.player[0]), [tree.label[child] for child in tree.children(0)]
    if not game.cards.dealt:
        raise ValueError(f"{game.name} has no cards beside its tree")
    buckets = game.cards.hand_buckets(0, player, None)
    shares, _ = source.rows(0, np.array(list(buckets.values()), np.int64))
    table = game.cards.at_table()
    names = [table.hand_text(hand) for hand in range(table.hand_count)]
    grid = make_grid(table.hand_cards, names)
    found: list[list[list[float]]] = [[] for _ in grid.label]
    place = {name: int(grid.cell[hand]) for hand, name in enumerate(names)} | {n: k for k, n in enumerate(grid.label)}
    for name, row in zip(buckets, shares.tolist(), strict=True):
        found[place[name]].append(row)
    colours = _colours(labels)
    rows = [["<td></td>"] * grid.columns for _ in range(grid.rows)]
    for label, (row, column), played in zip(grid.label, grid.place, found, strict=True):
        if played:
            rows[row][column] = _cell(label, np.mean(played, axis=0).tolist(), labels, colours)
    marks = zip(labels, colours, strict=True)
    key = " ".join(f'<span style="color:{colour}">■</span> {escape(label)}' for label, colour in marks)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    who = f"player {player} ({game.roles[player]}) at the first decision"
    return f"<p>{escape(title)}: {escape(who)}. {key}</p><table>{body}</table>"


def _colours(labels: Sequence[str]) -> list[str]:
    raises = iter(range(len(labels)))
    return [{"f": _FOLD, "c": _CALL}.get(label) or _RAISES[min(next(raises), len(_RAISES) - 1)] for label in labels]


def _cell(label: str, shares: Sequence[float], labels: Sequence[str], colours: Sequence[str]) -> str:
    ends = np.cumsum([0.0, *shares]) * 100
    stops = ", ".join(f"{c} {a:.1f}% {b:.1f}%" for c, a, b in zip(colours, ends, ends[1:], strict=False))
    mix = ", ".join(f"{name} {share:.1%}" for name, share in zip(labels, shares, strict=True))
    style = f"background:linear-gradient(to right, {stops});color:#111;padding:2px 5px;text-align:center"
    return f'<td style="{style}" title="{escape(f"{label}: {mix}")}">{escape(label)}</td>'
