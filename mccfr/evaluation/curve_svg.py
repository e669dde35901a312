"""Draws a run's evaluations over training as inline SVG."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 16, 14, 44
_TICKS = 5


class _Scale:
    """Maps values to pixels; the axis is logarithmic if all values are positive."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        self.log = min(values) > 0
        shown = [math.log10(value) for value in values] if self.log else list(values)
        self._low, self._high = min(shown), max(shown)
        if self._high - self._low < 1e-9:
            self._low, self._high = self._low - 0.5, self._high + 0.5
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        shown = math.log10(value) if self.log else value
        return self._start + (shown - self._low) / (self._high - self._low) * (self._end - self._start)

    def ticks(self) -> list[float]:
        """Return the powers of ten in the range, or evenly spaced values if there are fewer than two."""
        if self.log:
            powers = [10.0**power for power in range(math.ceil(self._low - 1e-9), math.floor(self._high + 1e-9) + 1)]
            if len(powers) > 1:
                return powers
        steps = [self._low + k * (self._high - self._low) / (_TICKS - 1) for k in range(_TICKS)]
        return [10.0**step for step in steps] if self.log else steps


def curve_svg(records: Sequence[Mapping[str, Any]], axis: str) -> str:
    """Return an SVG of exploitability, or of value if it was not measured, over `axis`.

    records  lines of evaluations.jsonl; "" is returned if no point can be drawn. Head-to-head records are drawn only
             for the opponent of the last record
    axis     "iterations" or "nodes_touched"
    """
    opponent = records[-1].get("against") if records else None
    records = [record for record in records if record.get("against") == opponent]
    key = "exploitability_mbb"
    for other in ("exploitability_chips", "value_chips"):
        if any(record[key] is None for record in records):
            key = other
    points = [(float(record[axis]), float(record[key])) for record in records if record[axis]]
    if not points:
        return ""
    names = {"exploitability_mbb": "exploitability (mbb/g)", "exploitability_chips": "exploitability (chips)"}
    x = _Scale([point[0] for point in points], _LEFT, _WIDTH - _RIGHT)
    y = _Scale([point[1] for point in points], _HEIGHT - _BOTTOM, _TOP)
    label = names.get(key, "value (chips)" if opponent is None else f"won from {opponent} (chips a hand)")
    parts = [f'<svg class="curve" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">']
    for tick in x.ticks():
        parts.append(f'<path class="rule" d="M{x(tick):.1f} {_TOP}V{_HEIGHT - _BOTTOM}"/>')
        parts.append(_text(x(tick), _HEIGHT - _BOTTOM + 16, _short(tick), "middle"))
    for tick in y.ticks():
        parts.append(f'<path class="rule" d="M{_LEFT} {y(tick):.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(_text(_LEFT - 6, y(tick) + 4, _short(tick), "end"))
    line = " ".join(f"{x(across):.1f},{y(up):.1f}" for across, up in points)
    parts.append(f'<polyline class="line" points="{line}"/>')
    for across, up in points:
        parts.append(f'<circle cx="{x(across):.1f}" cy="{y(up):.1f}" r="2.5">')
        parts.append(f"<title>{across:,.0f}: {up:.6g}</title></circle>")
    parts.append(_text((_LEFT + _WIDTH) / 2, _HEIGHT - 8, axis.replace("_", " "), "middle"))
    turned = f'transform="rotate(-90 14 {_HEIGHT / 2:.0f})"'
    parts.append(_text(14, _HEIGHT / 2, label, "middle", turned))
    return "".join([*parts, "</svg>"])


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'


def _short(value: float) -> str:
    """Return a tick's label."""
    if value and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.3g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return f"{value:,.4g}" if abs(value) < 1e3 else f"{value:,.0f}"
