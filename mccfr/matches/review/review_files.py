"""Reviews hand histories: the cost of every decision. Implements `mccfr review`."""

import hashlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from abstraction.kernels.compiling import working_seconds
from mccfr.common.intervals import ratio95
from mccfr.config.game_tables import HoldemGame
from mccfr.evaluation.samples import SampleFile, play_left
from mccfr.matches.acpc_log import LoggedHand
from mccfr.matches.hand_files import FoundHand, hand_files, read_hands
from mccfr.matches.hand_files.format_base import ROLES
from mccfr.matches.players import holdem_of, open_player
from mccfr.matches.review.hand_review import POTS, ReviewedHand, Reviewer
from mccfr.matches.socket_lines import FirstMessages
from mccfr.policy.strategy_profile import Behaviour, Profile
from mccfr.runs.phases import naming_phases, naming_steps
from mccfr.runs.reporter import Reporter, Silent
from storage.atomic_outputs import begins_with, check_output
from storage.damage import reading
from storage.json_files import parse_json

STREETS = ("preflop", "flop", "turn", "river")
_HEAD = "# mccfr review "
_TOLD = 20
"""Number of rejected hands that are reported one by one."""


def review_hands(
    paths: Sequence[Path],
    policy: str,
    *,
    resolve: str | None = None,
    boards: int = 16,
    workers: int = 1,
    keep: Path | None = None,
    top: int = 20,
    reporter: Reporter | None = None,
) -> dict[str, Any]:
    """Review hands in files and directories, and return the record of `mccfr review --json`.

    policy   policy or run of whole no-limit hold'em
    resolve  as for `Reviewer`
    boards   as for `DecisionCosts`
    keep     file for reviewed hands, one JSON object per line; the same review resumes from it after a stop
    top      number of decisions listed one by one, the costliest first

    Raises `ValueError` for another game or if no hand can be reviewed, `FileNotFoundError` for a missing file, and
    `StoppedError` at a signal.
    """
    if keep is not None:  # before anything is read
        check_output(keep, begins_with(_HEAD.encode()))
    with naming_phases(reporter or Silent()) as phases:
        phases.phase(f"reading {policy}")
        opened = open_player(policy, programs=False)
        side, game, spec = opened.contender.side, holdem_of(opened.table), opened.contender.spec
        assert side is not None
        if game is None:
            raise ValueError(f"{policy} plays {side.game.name}: hands of whole no-limit hold'em are reviewed")
        source: Behaviour = spec.policy  # type: ignore[attr-defined]
        reviewer = Reviewer(side, source, boards, resolve)
        phases.phase("reading the hands")
        found, refused = _hands(paths, game, phases)
        what = {"policy": side.fingerprint() if keep is not None else "", "resolve": resolve, "boards": boards}
        began, before = working_seconds(), 0
        with closing(_Kept(keep, what, found)) as kept:
            kept.read(len(found))
            before = len(kept.known)
            left = [number for number in range(len(found)) if number not in kept.known]

            def play(number: int) -> dict[str, Any]:
                hand = found[number].hand
                assert hand is not None
                return _record(found[number].where, hand, reviewer.review(hand, number))

            with naming_steps(phases):
                play_left(play, left, len(found), workers, kept, kept.add, "hand")
            records = [kept.known[number] for number in range(len(found))]
        seconds = working_seconds() - began
    record: dict[str, Any] = {"policy": policy, "resolve": resolve, "boards": boards, "hands": len(found)}
    record |= {"refused": sum(refused.values()), "reasons": dict(refused.most_common(_TOLD))}
    rate = (len(found) - before) / seconds if seconds > 0 and len(found) > before else None
    return record | _summed(records, game, top) | {"seconds": round(seconds, 3), "hands_per_second": rate}


def _summed(records: Sequence[Mapping[str, Any]], game: HoldemGame, top: int) -> dict[str, Any]:
    """Return the totals over all hands, and the costliest decisions."""
    rows = [(each, record) for record in records for each in record["decisions"]]
    worst = sorted(rows, key=lambda row: -row[0]["cost_chips"])[:top]
    return {
        "decisions": len(rows),
        "unknown": sum(record["unknown"] for record in records),
        "players": _players(records, game.blinds[1]),
        "worst": [{"where": record["where"], **row} for row, record in worst],
    }


def _hands(paths: Sequence[Path], game: HoldemGame, phases: Reporter) -> tuple[list[FoundHand], Counter[str]]:
    """Return the hands that can be reviewed, and counts of the others by reason; reports the first few."""
    refused, found, told = Counter[str](), list[FoundHand](), FirstMessages(phases.message, _TOLD)
    for path in [each for given in paths for each in hand_files(given)]:
        for one in read_hands(path, game):
            if one.hand is None:
                refused[one.why] += 1
                told(f"{one.where}: {one.why}")
            else:
                found.append(one)
    if not found:
        count = sum(refused.values())
        raise ValueError(
            f"none of {count:,} hands can be reviewed: give files of hands of two for this policy's stakes"
        )
    if refused:
        phases.message(f"{sum(refused.values()):,} hands are passed over, {len(found):,} are reviewed")
    return found, refused


def _record(where: str, hand: LoggedHand, reviewed: ReviewedHand) -> dict[str, Any]:
    """Return the record of a reviewed hand."""
    rows = []
    for row in reviewed.decisions:
        known = {key: value for key, value in row._asdict().items() if key != "verdict"} | row.verdict._asdict()
        link = f"#line={row.line}" + (f"&board={row.board}" if row.board else "")
        told = {"position": ROLES[row.position], "street": STREETS[row.street], "pot": reviewed.pot, "link": link}
        rows.append(known | told)
    return {
        "where": where,
        "names": list(hand.names),
        "unknown": reviewed.unknown,
        "won_chips": reviewed.won_chips,
        "aivat_chips": reviewed.aivat_chips,
        "decisions": rows,
    }


def _players(records: Sequence[Mapping[str, Any]], big_blind: float) -> dict[str, Any]:
    """Return the cost of each player's decisions and the winnings, in mbb per hand."""
    scale, found = 1000 / big_blind, dict[str, Any]()
    hands: dict[str, list[tuple[Mapping[str, Any], int]]] = defaultdict(list)
    for record in records:
        for position, name in enumerate(record["names"]):
            hands[name].append((record, position))
    for name, own in hands.items():
        rows = [row for record, position in own for row in record["decisions"] if row["position"] == ROLES[position]]
        costs = [
            sum(row["cost_chips"] for row in record["decisions"] if row["position"] == ROLES[position])
            for record, position in own
        ]
        found[name] = {
            "hands": len(own),
            "decisions": len(rows),
            **_mean("cost", costs, scale),
            **_mean("won", [_signed(record["won_chips"], position) for record, position in own], scale),
            **_mean("aivat", [_signed(record["aivat_chips"], position) for record, position in own], scale),
            "by": {
                key: _parts(rows, key, order, scale / len(own))
                for key, order in (("street", STREETS), ("position", ROLES), ("pot", POTS))
            },
        }
    return found


def _signed(chips: float | None, position: int) -> float | None:
    return None if chips is None else chips * (1 - 2 * position)


def _mean(title: str, values: Sequence[float | None], scale: float) -> dict[str, Any]:
    """Return the mean per hand and its 95 % interval; None if a hand's value is unknown.

    The mean of the known hands would have a selection bias.
    """
    known = np.array([each for each in values if each is not None])
    if len(known) < len(values) or not len(known):
        return {f"{title}_mbb": None, f"{title}_ci95_mbb": None}
    mean, ends = (float(known[0]), None) if len(known) == 1 else ratio95(known, np.ones(len(known)))
    return {f"{title}_mbb": mean * scale, f"{title}_ci95_mbb": None if ends is None else [end * scale for end in ends]}


def _parts(rows: Iterable[Mapping[str, Any]], key: str, order: Sequence[str], scale: float) -> dict[str, Any]:
    """Return the cost of the decisions of each kind, over all hands."""
    cost, count = defaultdict[str, float](float), Counter[str]()
    for row in rows:
        cost[row[key]] += row["cost_chips"]
        count[row[key]] += 1
    return {each: {"decisions": count[each], "cost_mbb": cost[each] * scale} for each in order if count[each]}


class _Kept(SampleFile):
    """Reviewed hands by number, and their optional file with one JSON object per line."""

    def __init__(self, path: Path | None, what: Mapping[str, Any], found: Sequence[FoundHand]) -> None:
        digest = hashlib.sha256("\n".join(one.hand.text() for one in found if one.hand).encode()).hexdigest()
        super().__init__(path, _HEAD.encode(), {**what, "hands": digest}, "another review")
        self.known = dict[int, dict[str, Any]]()

    def read(self, count: int) -> None:
        """Read the hands in the file, with numbers below `count`; raises `ValueError` for other content."""
        lines = self.records(lambda found: found.rfind(b"\n") + 1)
        if self.path is not None:
            self.known |= _records(self.path, lines, count)

    def add(self, number: int, record: dict[str, Any]) -> None:
        """Add a hand."""
        self.known[number] = record
        self.append(json.dumps([number, record]).encode() + b"\n")


class _DecisionFields(msgspec.Struct):
    """Typed fields of a decision in a kept hand."""

    player: str
    position: str
    street: str
    pot: str
    hand: str
    board: str
    line: str
    action: str
    best: str
    cost_chips: float


class _HandFields(msgspec.Struct):
    """Typed fields of a kept hand."""

    where: str
    names: tuple[str, str]
    unknown: int
    won_chips: float | None
    aivat_chips: float | None
    decisions: list[_DecisionFields]


def _records(path: Path, lines: bytes, count: int) -> dict[int, dict[str, Any]]:
    """Return the kept hands with numbers below `count`; raises `ValueError` for an invalid line."""
    known = dict[int, dict[str, Any]]()
    for line in lines.splitlines():
        try:
            number, record = json.loads(line)
            fits = type(number) is int and 0 <= number < count
            msgspec.convert(record, _HandFields)
        except (ValueError, TypeError, RecursionError):
            fits = False
        if not fits:
            raise ValueError(f"{path} has a line that is no reviewed hand: remove it, or the file")
        known[number] = record
    return known


def read_review(path: Path, source: Behaviour) -> list[dict[str, Any]]:
    """Return the hands that `review_hands` kept in a file, so far.

    source  the policy or run's strategy used for the review

    Raises `FileNotFoundError`, `UnreadableError` if the system cannot read the file, and `ValueError` for another file
    or a review by another policy.
    """
    with reading(path):
        head, _, lines = path.read_bytes().partition(b"\n")
    if not head.startswith(_HEAD.encode()):
        raise ValueError(f"{path} holds no review: give the FILE of mccfr review --keep FILE")
    side = source if isinstance(source, Profile) else Profile(source.game, source.strategy())  # type: ignore[attr-defined]
    stated = parse_json(head[len(_HEAD) :], f"the first line of {path}")
    if not isinstance(stated, dict) or stated.get("policy") != side.fingerprint():
        raise ValueError(f"{path} is a review by another policy: look at that one")
    known = _records(path, lines[: lines.rfind(b"\n") + 1], sys.maxsize)
    return [known[number] for number in sorted(known)]


def review_text(record: Mapping[str, Any]) -> str:
    """Return a review as text for people: cost of each player's decisions by kind, and the costliest."""
    found = [
        f"{record['hands']:,} hands by {record['policy']}, {record['decisions']:,} decisions; {record['refused']:,} "
        f"hands and {record['unknown']:,} decisions are not known ({record['seconds']:.3g} s)"
    ]
    for name, own in record["players"].items():
        found.append(f"\n{name}, {own['hands']:,} hands, {own['decisions']:,} decisions, mbb a hand")
        for title, key in (("decisions cost", "cost"), ("won", "won"), ("won by AIVAT", "aivat")):
            if own[f"{key}_mbb"] is not None:
                ends = own[f"{key}_ci95_mbb"]
                text = "" if ends is None else f" (95 %: {ends[0]:+.5g} to {ends[1]:+.5g})"
                found.append(f"  {title:16} {own[f'{key}_mbb']:+10.5g}{text}")
        for kinds in own["by"].values():
            for kind, part in kinds.items():
                found.append(f"  {kind:16} {part['cost_mbb']:10.5g}  {part['decisions']:,} decisions")
    if record["worst"]:
        found.append("\ncost in chips; hand, board, line, what was done and what wins most")
    for row in record["worst"]:
        ends = row["ci95_chips"]
        sure = "" if ends is None else f" ({ends[0]:.5g} to {ends[1]:.5g})"
        taken = f", taken for {row['taken_for']}" if row["taken_for"] else ""
        found.append(
            f"{row['cost_chips']:.5g}{sure}  {row['player']} {row['hand']} {row['board'] or '-'} {row['line'] or '-'}: "
            f"{row['action']} ({row['probability']:.0%}), best {row['best']}{taken}; {row['where']}"
        )
    return "\n".join(found)
