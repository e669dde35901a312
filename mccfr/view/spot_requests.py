"""Solves the spots that users type into the page's form, and adds the solutions to the page.

A spot is one betting situation of two hold'em players: board, two ranges, pot, stack and bet sizes. A child process
(`mccfr.view.spot_worker`) solves it into a run directory, as the command `mccfr spot` does. It ends with the server.
"""

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from abstraction.cards import combo_masks, combo_table, combo_text, parse_cards
from abstraction.range_notation import class_names, read_range
from mccfr.cards.grid import make_grid
from mccfr.config.spot_table import STREETS, auto_counts, locks_of, with_sizes
from mccfr.config.value_limits import share_of, shown
from mccfr.games.menu import parse_size
from mccfr.view.range_text import range_text
from mccfr.view.resolve_request import BusyError

FIELDS = (
    "board",
    "oop",
    "ip",
    "pot",
    "stack",
    "bets",
    "raises",
    "donk",
    "allin_spr",
    "rake",
    "rake_cap",
    "to",
    "locks",
)
"""Fields of the form, as texts.  `locks` are lines LINE=WHAT."""
_NUMBERS = ("pot", "stack", "rake_cap", "allin_spr")
_TO = "0.3%"
_NAMES = [combo_text(hand) for hand in range(len(combo_table()))]
_GRID = make_grid(combo_table(), _NAMES)


class SpotRequests:
    """Solves the spots (a board with two ranges) that the web page requests, one at a time.

    Several threads may call it.
    """

    def __init__(self, solve_slots: threading.Semaphore, show: Callable[[Path, Mapping[str, str]], str]) -> None:
        """Prepare for requests; no spot is solved yet.

        solve_slots  semaphore that limits how many solves of all kinds run at the same time in the server
        show         function of (run directory, form fields) that adds the result to the page; returns the run's name
        """
        self._places, self._show, self._lock = solve_slots, show, threading.Lock()
        self._state: dict[str, Any] | None = None
        self._process: subprocess.Popen[str] | None = None
        self._began = 0.0

    def range(self, range: str = "", board: str = "", classes: str = "", weight: str = "1") -> dict[str, Any]:  # noqa: A002
        """Set the weight of some hand classes in a range, and return the new range.

        range    range text, such as "QQ+,AKs:0.5"
        board    cards such as "Ah7d2c", or ""
        classes  classes to set, such as "AKs,QQ"; "" changes nothing
        weight   their new weight, 0 to 1

        Returns the range's `text`, the mean `weights` [169] of its classes, and the weighted number of `combos`. Hands
        that share a card with the board are left out of `weights` and `combos`.

        Raises `ValueError` for an invalid range, class, weight or board.
        """
        weights, text = _range("range", range), range
        if classes:
            share, names = _number("weight", weight), class_names()
            for name in classes.split(","):
                if name not in names:
                    raise ValueError(f"{shown(name)} is not a class of hands, such as AKs")
                weights[_GRID.cell == names.index(name)] = share
            if not 0 <= share <= 1:
                raise ValueError(f"weight = {weight}: a number from 0 to 1 is needed")
            text = range_text(_GRID, _NAMES, weights, np.ones(len(weights), bool), 1.0)
        free = combo_masks() & np.uint64(sum(1 << card for card in parse_cards(board))) == 0 if board else weights >= 0
        count = np.bincount(_GRID.cell, free, len(_GRID.label))
        mean = np.bincount(_GRID.cell, weights * free, len(_GRID.label)) / np.maximum(count, 1)
        return {"text": text, "weights": np.round(mean, 4).tolist(), "combos": round(float(weights @ free), 2)}

    def start(
        self, fields: Mapping[str, str], policy: Path | None = None, of: int | str = 0, line: str = ""
    ) -> dict[str, Any]:
        """Start to solve a spot; return its progress as `state` does.

        fields            {name: text} of the page's form, such as `board` and `pot`.
        policy, of, line  a strategy's path, its number or name on the page, and a betting line that ends at the start
                          of a street. Ranges, pot and stack are then those of the strategy after the line. Without
                          `policy` they are fields of the form

        Raises `ValueError` for invalid fields. Raises `BusyError` while this object solves a spot, or if the server
        runs as many solves as it allows.
        """
        request = spot_request(fields) | {"policy": None if policy is None else str(policy), "line": line or None}
        with self._lock:
            if self._process is not None:
                raise BusyError("a spot is being solved: stop it first, or wait")
            if not self._places.acquire(blocking=False):
                raise BusyError("spots of other strategies are being solved: try again when one of them is done")
            self._began = time.monotonic()
            filled = {name: text for name, text in fields.items() if text}
            filled |= {"line": line, "of": str(of)} if line else {}
            self._state = {"asked": filled, "to": request["to"], "curve": [], "problem": "", "of": None, "said": []}
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mccfr.view.spot_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # the terminal's interrupt then reaches the server only
                text=True,
            )
            threading.Thread(target=self._listen, args=(self._process, self._state, request), daemon=True).start()
        return self.state()

    def state(self) -> dict[str, Any]:
        """Return the progress of the newest solve of a spot; `ValueError` if there is none.

        asked        non-empty fields of the form, and for a spot after a strategy's line also `line` and `of`.
        said, phase  list of messages for the user so far, and the name of the work in progress, such as "training"
        plan         number of infosets, bytes of memory and expected time; absent until training begins
        run          directory of the run, beside `pot_chips`, the starting pot; both absent until training begins
        seconds      time since the start; of an ended solve, its duration
        curve        (iterations, exploitability as a share of the pot) of each evaluation so far
        to           share of the pot: the solve ends at this exploitability
        done         True if the solve has ended
        problem      sentence on an error, or ""
        answer       fields that `mccfr spot --json` prints; absent before the end
        stopped      True if training was stopped before its goal; absent before the end
        of           name of the solution's run on the page; None before the end
        """
        if self._state is None:
            raise ValueError("no spot has been typed yet")
        seconds = self._state.get("took", time.monotonic() - self._began)
        return {**self._state, "seconds": round(seconds, 1), "done": "took" in self._state}

    def stop(self) -> dict[str, Any]:
        """Ask the child process to stop and keep its result so far; return the progress as `state` does.

        It does not wait for the end. Raises `ValueError` if no spot was requested yet.
        """
        found, process = self.state(), self._process
        if process is not None and process.stdin is not None:
            process.stdin.close()
        return found

    def close(self) -> None:
        """Stop the solve and wait for it, when the server ends."""
        if (process := self._process) is not None:
            self.stop()
            process.wait()

    def _listen(self, process: "subprocess.Popen[str]", state: dict[str, Any], request: Mapping[str, Any]) -> None:
        """Send the request to the child process; copy its messages into `state` until it ends.

        It runs in a thread of its own. At the end it adds the solution to the page, and allows the server another
        solve.
        """
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                self._take(state, json.loads(line))
            if process.wait() and not state["problem"] and "answer" not in state:
                state["problem"] = "stopped before anything was trained"
            if "answer" in state:
                state["of"] = self._show(Path(state["run"]), state["asked"])
        except Exception as error:  # any error is shown on the page
            state["problem"] = " ".join(str(error).split()) or type(error).__name__
        finally:
            process.stdout.close()
            process.stdin.close()
            with self._lock:
                self._process = None
            self._places.release()
            state["took"] = time.monotonic() - self._began

    @staticmethod
    def _take(state: dict[str, Any], news: dict[str, Any]) -> None:
        """Add `news`, a message of the child process, to the progress `state` in place."""
        if "said" in news:
            state["said"].append(news["said"])
        elif "iterations" in news:
            share = news["exploitability_chips"] / state["pot_chips"]
            state["curve"].append([news["iterations"], round(share, 8)])
        else:
            state.update(news)


def spot_request(fields: Mapping[str, str]) -> dict[str, Any]:
    """Check the texts of the spot form, and convert them to the request for the child process.

    fields  {name: text} of the form; absent fields count as ""

    Returns {name: value}, and None for an empty field. Values of `pot`, `stack`, `rake_cap` (chips) and `allin_spr`
    (bets that leave at most this stack-to-pot ratio become all-in) are numbers. `rake` and `to` (exploitability that
    ends the solve) are shares; `to` is 0.003 by default. `locks` is a list of fixed strategies as texts LINE=WHAT, []
    for none. The others are texts.

    Raises `ValueError`, which names an invalid field.
    """
    given = {name: fields.get(name, "").strip() for name in FIELDS}
    for name in ("oop", "ip"):
        if given[name] and not _range(name, given[name]).any():
            raise ValueError(f"{name}: the range holds no hand: type or paint one")
    number = {name: _number(name, given[name]) if given[name] else None for name in _NUMBERS}
    number["rake"] = _share("rake", given["rake"]) if given["rake"] else None
    for name in ("bets", "raises", "donk"):
        if name != "donk":
            auto_counts(name, given[name], len(STREETS))
        for size in re.split("[,/]", given[name] if name == "donk" else with_sizes(given[name], ("",))):
            if size.strip():
                parse_size(size, name)
    locks = [text for text in given["locks"].splitlines() if text.strip()]
    locks_of(locks)  # raises its errors at once
    texts = {name: given[name] or None for name in ("board", "oop", "ip", "bets", "raises", "donk")}
    return {**texts, **number, "to": _share("to", given["to"] or _TO), "locks": locks}


def _number(name: str, text: str) -> float:
    """Convert the text of field `name` to a number without unit; `ValueError` names the field."""
    if re.fullmatch(r"\d+\.?\d*|\.\d+", text.strip()) is None:
        raise ValueError(f"{name} = {shown(text)}: a number without unit is needed")
    return float(text)


def _share(name: str, text: str) -> float:
    """Convert the text of field `name` to a share: 0.05 for "5%"; `ValueError` names the field."""
    try:
        return share_of(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _range(name: str, text: str) -> Any:
    """Return the weights [1326], 0 to 1, of a range text in field `name`, by hand.

    Raises `ValueError` for invalid text, and for "@FILE", which names a range file on the command line.
    """
    if "@" in text:
        raise ValueError(f"{name}: files are not read here: type the range, as QQ+,AKs:0.5")
    try:
        return read_range(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
