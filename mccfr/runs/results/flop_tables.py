"""Reports action frequencies, equities and EVs over many flops, by flop, texture and hand class.

The subject is a decision of a whole strategy, named by its betting line, or the first decision of a spot. A spot is a
postflop situation with given ranges, pot and stacks.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.cards import RANKS, cards_text
from mccfr.evaluation.flop_values import FlopReport, Flops, flop_report, some_flops
from mccfr.evaluation.samples import Effort
from mccfr.play.expected_value import realisation
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.results.solved_flops import has_hands, solved_flops, typed_spot
from mccfr.runs.results.targets import Reference, open_target
from storage import durable
from storage.atomic_outputs import begins_with, check_output, output

POSITIONS = "oop", "ip"
_SUITS, _RANKS = ("monotone", "two-tone", "rainbow"), ("three of a kind", "paired", "unpaired")
_DIGITS = 6
_RUN_OUTS = 10  # per flop
_WITHIN = 0.003  # share of the pot
Table = list[dict[str, Any]]


class PageWriter(NamedTuple):
    """Functions, given by the caller, with which `report_flops` writes all tables as an HTML page.

    ours   takes the path of a file, and returns whether it is the page of an earlier report, which may be replaced
    write  takes the page's path, its title, the report, and {table name: rows} from `tables_of`
    """

    ours: Callable[[Path], bool]
    write: Callable[[Path, str, FlopReport, Mapping[str, Table]], None]


def textures(cards: npt.NDArray[np.int8]) -> dict[str, npt.NDArray[np.str_]]:
    """Return {name: [F] str}, three descriptions of each of F flops.

    cards  [F, 3] the flops' cards, each as 4·rank + suit with ranks from 0 (deuce)

    The names and descriptions are:

    suits      "monotone", "two-tone" or "rainbow"
    pairs      "three of a kind", "paired" or "unpaired"
    high card  letter of the highest rank, such as "A"
    """
    suits, ranks = (cards % 4).tolist(), (cards // 4).tolist()
    return {
        "suits": np.array([_SUITS[len(set(each)) - 1] for each in suits]),
        "pairs": np.array([_RANKS[len(set(each)) - 1] for each in ranks]),
        "high card": np.array([RANKS[rank] for rank in (cards // 4).max(axis=1)]),
    }


def tables_of(report: FlopReport) -> dict[str, Table]:
    """Return {table name: rows} of the tables `flops`, `textures` and `classes` of a report.

    A row is a dict; docs/files.md lists its fields.
    """
    all_flops = np.arange(len(report.flops.cards))
    total = report.weight(all_flops)
    texture = textures(report.flops.cards)
    flops = [
        {
            "flop": _flop_text(report.flops.cards[flop]),
            "stands_for": float(report.flops.weight[flop]),
            **{name: str(kinds[flop]) for name, kinds in texture.items()},
            **_row(report, np.array([flop]), total),
        }
        for flop in all_flops.tolist()
        if total[flop] > 0
    ]
    groups = [("all", "all", all_flops)]
    for name, kinds in texture.items():
        groups += [(name, str(kind), np.flatnonzero(kinds == kind)) for kind in sorted(set(kinds.tolist()), key=_order)]
    kinds_of = [
        {"by": by, "texture": kind, **_row(report, own, total)} for by, kind, own in groups if total[own].sum() > 0
    ]
    return {"flops": flops, "textures": kinds_of, "classes": _classes(report)}


def _order(kind: str) -> tuple[int, str]:
    """Return the sort key of a texture: ranks such as "K" from high to low, others by name."""
    return -RANKS.find(kind) if len(kind) == 1 else 0, kind


def _row(report: FlopReport, own: npt.NDArray[np.int64], total: npt.NDArray[np.float64]) -> dict[str, Any]:
    row: dict[str, Any] = {"share": total[own].sum() / total.sum()}
    row |= dict(zip(report.actions, report.frequencies(own), strict=True))
    for player, name in enumerate(POSITIONS):
        value, equity = report.value(own, player), report.equity(own, player)
        row |= {f"equity_{name}": equity, f"ev_{name}": value.mean, f"ev_{name}_within": value.within}
        for key, chips in ((f"eqr_{name}", value.mean), (f"eqr_{name}_within", value.within)):
            row[key] = realisation(chips, equity, report.pot)
    return _rounded(row)


def _rounded(row: Mapping[str, float | None]) -> dict[str, float | None]:
    return {key: None if number is None else round(float(number), _DIGITS) for key, number in row.items()}


def _classes(report: FlopReport) -> Table:
    rows = []
    for player, position in enumerate(POSITIONS):
        for name, (share, equity, ev, played) in report.of_classes(player).items():
            numbers: dict[str, float | None] = {"share": share, "equity": equity, "ev": ev}
            numbers["eqr"] = realisation(ev, equity, report.pot)
            numbers |= dict.fromkeys(report.actions) | dict(zip(report.actions, played, strict=bool(played)))
            rows.append({"position": position, "class": name, **_rounded(numbers)})
    return rows


class ReportedFlops(NamedTuple):
    """Result of `report_flops`; flops are texts such as "AsKd2c".

    report     frequencies, equities and EVs on all flops but `left_out`, from which the tables are made
    left_out   a spot's flops on which the two players cannot both hold a hand of their ranges; they are not solved
    unreached  a spot's flops on which solving ended before it reached the required exploitability
    """

    report: FlopReport
    left_out: list[str]
    unreached: list[str]


def report_flops(
    target: Reference,
    out: Path,
    line: str,
    *,
    flops: int,
    run_outs: int | None,
    seed: int | None,
    to: float | None,
    effort: Effort,
    page: PageWriter,
) -> ReportedFlops:
    """Compute the report of a betting line or a spot over flops, and write its tables to files.

    target          policy or run with the line; or run or configuration of a spot (the rest of a hand with given
                    ranges, pot and stacks), solved on each flop
    out             .csv: path of the table of flops, beside .textures.csv and .classes.csv; .html: one page, by `page`
    line            betting line to the reported decision, on the flop; "" for a spot, reported at its first decision
    flops           number of flops
    run_outs, seed  policy or run: sampled turns and rivers per flop, and their seed; None: 10 and 0
    to              spot: exploitability to reach, as a share of the pot; None: 0.3 %
    effort          number of processes, time budget, and file that keeps finished flops

    Raises `ValueError` for another suffix, for options without effect, and for a line that ends at no decision on the
    flop. Raises `FileExistsError` if a path has a file that is no earlier report, and `RuntimeError` if a worker dies.
    """
    if out.suffix not in (".csv", ".html"):
        raise ValueError(f"{out} is no name for a report of flops: it must end in .csv or .html")
    paths = {"flops": out} | {name: out.with_suffix(f".{name}.csv") for name in ("textures", "classes")}
    heads = {"flops": b"flop,", "textures": b"by,", "classes": b"position,class,"}
    may_replace = {name: begins_with(head) for name, head in heads.items()}
    if out.suffix == ".html":
        check_output(out, page.ours)
    for name, path in paths.items() if out.suffix == ".csv" else ():
        check_output(path, may_replace[name])
    spot, chosen = typed_spot(target.path), some_flops(flops)
    if spot is None:
        _refuse_given("a policy's line, of which nothing is solved", to=to)
        report = _of_line(target, line, chosen, (run_outs, seed), effort)
        tables, left_out, unreached = tables_of(report), [], []
    else:
        if line:
            raise ValueError(f"line {line!r}: a spot is reported where it begins, so give the empty line")
        options = {"run_outs": run_outs, "seed": seed, "checkpoint": target.number, "abstraction": target.abstraction}
        _refuse_given("a spot, which is solved on each flop", **options)
        possible = has_hands(spot, chosen)
        left_out = [_flop_text(cards) for cards in chosen.cards[~possible]]
        if not possible.any():
            raise ValueError(f"{target.path}: none of the {flops} flops leaves both ranges a hand: give wider ranges")
        within = _WITHIN if to is None else to
        report, reached = solved_flops(spot, Flops(chosen.cards[possible], chosen.weight[possible]), within, effort)
        tables = tables_of(report)
        for row, share in zip(tables["flops"], reached.tolist(), strict=True):
            row["exploitability_pot"] = round(share, _DIGITS)
        unreached = [_flop_text(cards) for cards in report.flops.cards[reached > within]]
    if out.suffix == ".html":
        page.write(out, target.path.resolve().name, report, tables)
    for name, rows in tables.items() if out.suffix == ".csv" else ():
        _write_csv(paths[name], rows, may_replace[name])
    return ReportedFlops(report, left_out, unreached)


def _of_line(
    target: Reference,
    line: str,
    flops: Flops,
    sampling: tuple[int | None, int | None],
    effort: Effort,
) -> FlopReport:
    """Return action frequencies, equities and EVs on each flop, after a betting line of a policy or run.

    target    the policy or run
    sampling  (number of sampled turns and rivers per flop, their seed); None stands for 10, and for seed 0
    """
    opened = open_target(target)
    run_outs = _RUN_OUTS if sampling[0] is None else sampling[0]
    seed = 0 if sampling[1] is None else sampling[1]
    return flop_report(Profile(opened.game, opened.strategy), line, flops, run_outs, seed, effort)


def _refuse_given(what: str, **options: object) -> None:
    """Raise `ValueError` if any of `options` is not None, because it has no effect on this report.

    what     the subject of the report, for the message
    options  {name of the command-line option, with "_" for "-": its value}
    """
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"--{name.replace('_', '-')} has no effect on the report of {what}: leave it out")


def _flop_text(cards: npt.NDArray[np.int8]) -> str:
    """Return a flop's cards, given in ascending order, as text from the highest: "AsKd2c"."""
    return cards_text(cards[::-1].tolist())


def _write_csv(out: Path, rows: Sequence[Mapping[str, Any]], is_report: Callable[[Path], bool]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with output(out, is_report) as temporary:
        durable.write_file(temporary, text.getvalue().encode())
