"""Reviews hand histories: how much EV each decision loses, as a policy judges it (`mccfr review`)."""

import hashlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import log
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from abstraction.kernels.compiling import working_seconds
from mccfr.common.intervals import ratio95
from mccfr.config.game_tables import HoldemGame
from mccfr.evaluation.samples import SampleFile, play_remaining
from mccfr.games.betting import MOST_SEATS
from mccfr.games.holdem_betting import BUTTON, position_names
from mccfr.matches.hand_files import FoundHand, hand_files, read_hands
from mccfr.matches.hand_files.format_base import CheckedHand, Stakes, no_policy, stakes_of
from mccfr.matches.players import holdem_of, open_player
from mccfr.matches.review.hand_review import (
    POTS,
    SOLVED,
    ReviewedDecision,
    ReviewedHand,
    Reviewer,
)
from mccfr.matches.review.review_text import costliest_first
from mccfr.matches.socket_lines import FirstMessages
from mccfr.policy import is_policy
from mccfr.policy.strategy_profile import Behaviour, Profile
from mccfr.runs.directory.run import is_run
from mccfr.runs.phases import naming_phases, naming_steps
from mccfr.runs.reporter import Reporter, Silent
from mccfr.trees.street_amounts import street_line
from storage.atomic_outputs import begins_with, check_output
from storage.damage import reading
from storage.json_files import parse_json

STREETS = ("preflop", "flop", "turn", "river")
_HEAD = "# mccfr review "
_HAND_FIELDS = ("where", "policy", "distance", "currency", "tournament")  # repeated for each of its decisions
_JUDGED = ("how", "probability", "best")
_SAME = 1e-6  # tolerance between stakes, in big blinds
_TOLD = 20
"""Number of rejected hands that are reported one by one."""


@dataclass(frozen=True)
class _Judge:
    """A policy that reviews hands with the number of players of its game.

    name     of the policy or run
    game     the policy's `[game]` settings: stacks and blinds; `depth` is the effective stack in big blinds
    side     the policy's game and strategy, for AIVAT's values
    source   the same policy, as an object that returns its action probabilities
    boards   number of full boards to draw, over which the EV of a decision on the flop is averaged
    resolve  street from which every decision is judged by solving its street again. None: only where stakes or actions
             differ from the tree's; with three and more players always from the flop on, once two are left
    """

    name: str
    game: HoldemGame
    side: Profile
    source: Behaviour
    boards: int
    resolve: str | None

    @cached_property
    def depth(self) -> float:
        return stakes_of(self.game).depth

    @cached_property
    def reviewer(self) -> Reviewer:
        return Reviewer(self.side, self.source, self.boards, self.resolve)


def _judges(policy: str, boards: int, resolve: str | None) -> list[_Judge]:
    """Open a policy or run, or all in a folder; return them sorted by players and stack depth.

    policy  path of the policy, run or folder; `boards` and `resolve` as in `_Judge`

    Raises `ValueError` for a game other than full-deck no-limit hold'em. Also for two policies with equal stack in big
    blinds and number of players.
    """
    path = Path(policy)
    names = [policy]
    if path.is_dir() and not (is_policy(path) or is_run(path)):
        names = [str(each) for each in sorted(path.iterdir()) if is_policy(each) or is_run(each)] or names
    judges = list[_Judge]()
    for name in names:
        opened = open_player(name, programs=False)
        side, game = opened.contender.side, holdem_of(opened.table)
        assert side is not None
        if game is None:
            raise ValueError(f"{name} plays {side.game.name}: hands of whole no-limit hold'em are reviewed")
        source: Behaviour = opened.contender.spec.policy  # type: ignore[attr-defined]
        judges.append(_Judge(name, game, side, source, boards, resolve))
    judges.sort(key=lambda judge: (judge.game.seats, judge.depth))
    for one, other in pairwise(judges):
        if (one.game.seats, one.depth) == (other.game.seats, other.depth):
            raise ValueError(f"{one.name} and {other.name} both have stacks of {one.depth:g} big blinds: keep one")
    return judges


def _nearest(judges: Sequence[_Judge], stakes: Stakes) -> list[_Judge]:
    """Return the one or two policies whose stacks in big blinds are nearest to the hand's stack.

    Only policies for the hand's number of players count, and stacks are compared by ratio. If the hand's stack is
    between those of two policies, the result is the nearest one and the nearest one on the other side.
    Raises `ValueError` if no policy is for this number of players.
    """
    depth, fitting = stakes.depth, [judge for judge in judges if judge.game.seats == stakes.seats]
    if not fitting:
        raise ValueError(no_policy(stakes.seats))
    ranked = sorted(fitting, key=lambda judge: abs(log(judge.depth / depth)))
    beyond = [judge for judge in ranked if (judge.depth - depth) * (ranked[0].depth - depth) < 0]
    return [ranked[0], *beyond[:1]]


def _distance(stakes: Stakes, judge: _Judge) -> str:
    """Return as text how stack, blinds and antes of a hand differ from the policy's game; "" if equal.

    For example, "stack 150 for 200" means 150 big blinds in the hand and 200 in the policy's game.
    """
    rules, big, seats, game = stakes.rules, stakes.big_blind, stakes.seats, judge.game
    straddled = seats == 2 and rules.first_player[0] != BUTTON
    blinds = [(chips - rules.put_in_before) / big for chips in rules.put_in]
    pairs = [
        ("stack", stakes.depth, judge.depth),
        (
            "straddle" if straddled else "small blind",
            blinds[BUTTON if seats == 2 else 0],
            game.blinds[0] / game.blinds[1],
        ),
        ("other blinds and straddles", sum(blinds[2:]), 0.0),
        (
            "antes and dead blinds",
            (seats * rules.put_in_before + sum(rules.dead)) / big,
            (seats * game.ante + game.big_blind_ante) / game.blinds[1],
        ),
    ]
    differences = [f"{name} {ours:.4g} for {theirs:.4g}" for name, ours, theirs in pairs if abs(ours - theirs) > _SAME]
    return ", ".join(differences)


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
    """Review hands in files and directories; return the dict that `mccfr review --json` prints.

    policy   policy or run of full-deck no-limit hold'em, or a folder of such. Each hand is judged by the one for its
             number of players with the nearest stack in big blinds, by ratio. If its stack is between those of two
             policies, the farther one judges each decision too
    resolve  "flop", "turn" or "river": from there on every decision is judged by solving its street again. None: only
             where stakes or actions differ from the tree's. Three and more players: always from the flop on, once two
             are left
    boards   number of full boards to draw, over which the EV of a decision on the flop is averaged
    workers  number of processes
    keep     file for reviewed hands, one JSON value per line; the same review resumes from it after a stop
    top      number of decisions listed one by one, the costliest first

    Raises `ValueError` for a policy of another game or if no hand can be reviewed. Raises `FileNotFoundError` for a
    missing file, `FileExistsError` if `keep` is a file of another kind, and `StoppedError` at a signal.
    """
    if keep is not None:  # before anything is read
        check_output(keep, begins_with(_HEAD.encode()))
    with naming_phases(reporter or Silent()) as phases:
        phases.phase(f"reading {policy}")
        judges = _judges(policy, boards, resolve)
        phases.phase("reading the hands")
        hands, refused = _hands(paths, judges, phases)
        fingerprints = {judge.name: judge.side.fingerprint() if keep is not None else "" for judge in judges}
        what = {"policies": fingerprints, "resolve": resolve, "boards": boards}
        began, before = working_seconds(), 0
        with closing(_Kept(keep, what, hands)) as kept:
            kept.read(len(hands))
            before = len(kept.known)
            numbers = [number for number in range(len(hands)) if number not in kept.known]

            def play(number: int) -> dict[str, Any]:
                hand = hands[number].hand
                assert hand is not None
                near = _nearest(judges, hand.stakes)
                return _record(hands[number].where, hand, near, [each.reviewer.review(hand, number) for each in near])

            with naming_steps(phases):
                play_remaining(play, numbers, len(hands), workers, kept, kept.add, "hand")
            records = [kept.known[number] for number in range(len(hands))]
        seconds = working_seconds() - began
    record: dict[str, Any] = {"policy": policy, "resolve": resolve, "boards": boards, "hands": len(hands)}
    record |= {"refused": sum(refused.values()), "reasons": dict(refused.most_common(_TOLD))}
    rate = (len(hands) - before) / seconds if seconds > 0 and len(hands) > before else None
    return record | _summed(records, top) | {"seconds": round(seconds, 3), "hands_per_second": rate}


def _summed(records: Sequence[Mapping[str, Any]], top: int) -> dict[str, Any]:
    """Return the result's fields with totals over all hands, and the `top` costliest decisions.

    records  all reviewed hands, as dicts that `_record` returned
    """
    rows = [(each, record) for record in records for each in record["decisions"]]
    worst = sorted(rows, key=lambda row: costliest_first(row[0]))[:top]
    return {
        "decisions": len(rows),
        "without_cost": sum(row["cost_bb"] is None for row, _ in rows),
        "ended": dict(Counter(record["ended"] for record in records if record["ended"]).most_common(_TOLD)),
        "unknown": sum(record["unknown"] for record in records),
        "tournament_hands": sum(record["tournament"] for record in records),
        "players": _players(records),
        "worst": [{**{key: record[key] for key in _HAND_FIELDS}, **row} for row, record in worst],
    }


def _hands(paths: Sequence[Path], judges: Sequence[_Judge], phases: Reporter) -> tuple[list[FoundHand], Counter[str]]:
    """Read the files; return (hands to review, {reason: number of other hands with this reason}).

    The first 20 hands that cannot be reviewed are reported one by one, as messages of `phases`. Raises `ValueError` if
    none can be reviewed.
    """
    refused, hands, report = Counter[str](), list[FoundHand](), FirstMessages(phases.message, _TOLD)
    games = [judge.game for judge in reversed(judges)]
    for path in [each for given in paths for each in hand_files(given)]:
        for found in read_hands(path, *games):
            why = found.why
            try:
                if found.hand is not None:
                    _nearest(judges, found.hand.stakes)
                    hands.append(found)
                    continue
            except ValueError as error:
                why = str(error)
            refused[why] += 1
            report(f"{found.where}: {why}")
    if not hands:
        ((reason, _),) = refused.most_common(1)
        count = sum(refused.values())
        raise ValueError(f"none of {count:,} hands can be reviewed, most often for this reason: {reason}")
    if refused:
        phases.message(f"{sum(refused.values()):,} hands are passed over, {len(hands):,} are reviewed")
    return hands, refused


def _record(
    where: str, checked: CheckedHand, judges: Sequence[_Judge], reviews: Sequence[ReviewedHand]
) -> dict[str, Any]:
    """Return a reviewed hand as a dict for JSON: its stakes, winnings and judged decisions.

    where    file and line of the hand
    judges   policies that reviewed it: the nearest in stack depth, and perhaps a second one
    reviews  the review by each of these policies, in the same order
    """
    (hand, stakes), reviewed = checked, reviews[0]
    rows = [_row(each, stakes, reviewed.pot) for each in reviewed.decisions]
    for judge, review in zip(judges[1:], reviews[1:], strict=True):
        others = {each.line: _row(each, stakes, review.pot) for each in review.decisions}
        for row in rows:
            if other := others.get(row["line"]):
                told = {key: other[key] for key in (*_JUDGED, "cost_bb", "ci95_bb")}
                row["other"] = {"policy": judge.name, "distance": _distance(stakes, judge), **told}
    won, aivat = (
        None if chips is None else [each / stakes.big_blind for each in chips]
        for chips in (reviewed.won_chips, reviewed.aivat_chips)
    )
    return {
        "where": where,
        "names": list(hand.names),
        "policy": judges[0].name,
        "distance": _distance(stakes, judges[0]),
        "depth_bb": stakes.depth,
        "big_blind": stakes.big_blind / stakes.unit,
        "currency": stakes.currency,
        "tournament": stakes.tournament,
        "unknown": reviewed.unknown,
        "ended": reviewed.ended,
        "won_bb": won,
        "aivat_bb": aivat,
        "decisions": rows,
    }


def _row(row: ReviewedDecision, stakes: Stakes, pot: str) -> dict[str, Any]:
    """Return a reviewed decision as a dict for JSON: cost in big blinds, and in currency or chips.

    pot  kind of the pot, such as "3-bet"
    """
    verdict, ends, cost = row.verdict, row.verdict.ci95_chips, row.verdict.cost_chips
    link = f"#line={verdict.tree_line}" + (f"&board={row.board}" if row.board else "")
    return {
        **{key: getattr(row, key) for key in ("player", "hand", "board", "action")},
        "line": street_line(row.line, stakes.rules.line_start),
        **{key: getattr(verdict, key) for key in (*_JUDGED, "taken_for", "frequencies", "did", "note")},
        **{"position": position_names(stakes.seats)[row.position], "street": STREETS[row.street], "pot": pot},
        "link": link if verdict.how != SOLVED or verdict.tree_line else "",
        "cost_bb": None if cost is None else cost / stakes.big_blind,
        "ci95_bb": None if ends is None else [end / stakes.big_blind for end in ends],
        "cost": None if cost is None else cost / stakes.unit,
        "other": None,
    }


def _players(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return {player's name: {field: value}}: numbers of hands and decisions, cost, and winnings.

    Cost and winnings are means in mbb per hand. The total cost is also given in each currency.

    records  all reviewed hands, as dicts that `_record` returned
    """
    players = dict[str, Any]()
    hands: dict[str, list[tuple[Mapping[str, Any], int]]] = defaultdict(list)
    for record in records:
        for position, name in enumerate(record["names"]):
            hands[name].append((record, position))
    for name, hands_of in hands.items():
        judged = [
            [row for row in hand["decisions"] if row["position"] == position_names(len(hand["names"]))[seat]]
            for hand, seat in hands_of
        ]
        decisions = [[row for row in rows_of if row["cost_bb"] is not None] for rows_of in judged]
        rows = [row for rows_of in decisions for row in rows_of]
        money = Counter[str]()
        for (record, _), rows_of in zip(hands_of, decisions, strict=True):
            if rows_of:
                money["tournament chips" if record["tournament"] else record["currency"] or "chips"] += sum(
                    row["cost"] for row in rows_of
                )
        players[name] = {
            "hands": len(hands_of),
            "decisions": len(rows),
            "without_cost": sum(map(len, judged)) - len(rows),
            "cost": dict(money),
            **_mean("cost", [sum(row["cost_bb"] for row in rows_of) for rows_of in decisions]),
            **_mean("won", [record["won_bb"] and record["won_bb"][position] for record, position in hands_of]),
            **_mean("aivat", [record["aivat_bb"] and record["aivat_bb"][position] for record, position in hands_of]),
            "by": {
                key: _parts(rows, key, order, 1000 / len(hands_of))
                for key, order in (("street", STREETS), ("position", position_names(MOST_SEATS)), ("pot", POTS))
            },
        }
    return players


def _mean(title: str, values: Sequence[float | None]) -> dict[str, Any]:
    """Return the fields `{title}_mbb` and `{title}_ci95_mbb`: the mean per hand and its 95 % interval.

    They are None if a hand's value is unknown, since the mean of the known hands would have a selection bias. The
    interval of a single hand is None too.

    title   name of the quantity, such as "cost" or "won"
    values  the quantity for each hand, in big blinds; None: unknown
    """
    known = np.array([each for each in values if each is not None])
    if len(known) < len(values) or not len(known):
        return {f"{title}_mbb": None, f"{title}_ci95_mbb": None}
    mean, ends = (float(known[0]), None) if len(known) == 1 else ratio95(known, np.ones(len(known)))
    return {f"{title}_mbb": 1000 * mean, f"{title}_ci95_mbb": None if ends is None else [1000 * end for end in ends]}


def _parts(rows: Iterable[Mapping[str, Any]], key: str, order: Sequence[str], scale: float) -> dict[str, Any]:
    """Return decisions and cost by street, position or pot: {"flop": {"decisions": n, "cost_mbb": x}}.

    rows   decisions with a cost
    key    field by which they are divided: "street", "position" or "pot"
    order  all values of that field, in the order of the result
    scale  mbb per hand for a cost of one big blind
    """
    cost, count = defaultdict[str, float](float), Counter[str]()
    for row in rows:
        cost[row[key]] += row["cost_bb"]
        count[row[key]] += 1
    return {each: {"decisions": count[each], "cost_mbb": cost[each] * scale} for each in order if count[each]}


class _Kept(SampleFile):
    """Stores reviewed hands, and saves them in a file if one is given.

    known  {index of the hand among all hands of the review: reviewed hand as a dict}
    """

    def __init__(self, path: Path | None, what: Mapping[str, Any], hands: Sequence[FoundHand]) -> None:
        texts = [f"{hand.hand.hand.text()} {hand.hand.stakes.text()}" for hand in hands if hand.hand]
        digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
        super().__init__(path, _HEAD.encode(), {**what, "hands": digest}, "another review")
        self.known = dict[int, dict[str, Any]]()

    def read(self, count: int) -> None:
        """Read reviewed hands from the file into `known`, if a file is given.

        count  number of hands in the review

        Raises `ValueError` for the file of another review, an invalid line, or an index not below `count`.
        """
        lines = self.records(lambda found: found.rfind(b"\n") + 1)
        if self.path is not None:
            self.known |= _records(self.path, lines, count)

    def add(self, number: int, record: dict[str, Any]) -> None:
        """Store the reviewed hand of index `number`, and append it to the file if there is one."""
        self.known[number] = record
        self.append(json.dumps([number, record]).encode() + b"\n")


class _DecisionFields(msgspec.Struct):
    """Fields and types of a decision in the file of reviewed hands, to validate it."""

    player: str
    position: str
    street: str
    pot: str
    hand: str
    board: str
    line: str
    link: str
    how: str
    taken_for: str
    probability: float
    frequencies: dict[str, float]
    did: str
    best: str
    note: str
    cost_bb: float | None
    ci95_bb: tuple[float, float] | None
    cost: float | None
    other: dict[str, Any] | None


class _HandFields(msgspec.Struct):
    """Fields and types of a hand in the file of reviewed hands, to validate it."""

    where: str
    names: list[str]
    policy: str
    distance: str
    currency: str
    tournament: bool
    unknown: int
    ended: str
    won_bb: list[float] | None
    aivat_bb: list[float] | None
    decisions: list[_DecisionFields]


def _records(path: Path, lines: bytes, count: int) -> dict[int, dict[str, Any]]:
    """Parse the file's lines to {index of the hand: reviewed hand}, with indices below `count`.

    Raises `ValueError` for an invalid line.
    """
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


def read_review(path: Path, source: Behaviour) -> tuple[list[dict[str, Any]], str]:
    """Read the file of a review: return its reviewed hands, and the policy's name in it.

    source  a policy, or a run's strategy, that was used for the review (one of them if there were several)

    Raises `FileNotFoundError`, `UnreadableError` if the system cannot read the file, and `ValueError` for a file that
    is no review or a review by other policies.
    """
    with reading(path):
        head, _, lines = path.read_bytes().partition(b"\n")
    if not head.startswith(_HEAD.encode()):
        raise ValueError(f"{path} holds no review: give the FILE of mccfr review --keep FILE")
    side = source if isinstance(source, Profile) else Profile(source.game, source.strategy())  # type: ignore[attr-defined]
    stated = parse_json(head[len(_HEAD) :], f"the first line of {path}")
    policies = stated.get("policies") if isinstance(stated, dict) else None
    own = side.fingerprint()
    name = (
        next((each for each, print_ in policies.items() if print_ == own), None) if isinstance(policies, dict) else None
    )
    if name is None:
        raise ValueError(f"{path} is a review by another policy: look at that one")
    known = _records(path, lines[: lines.rfind(b"\n") + 1], sys.maxsize)
    return [known[number] for number in sorted(known)], name
