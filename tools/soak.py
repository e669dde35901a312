"""Soak test: hours of training, evaluating and exporting with injected faults.

Three runs take turns, each repeated from the start; one repetition is a "life".  The first is a blueprint of whole
hold'em (hunl-fine), trained, evaluated by local best response and exported.  The second is hold'em in strata with most
blocks on disk; the third is on two machines, simulated by processes.  Each session has one fault (`soak_troubles`).

After each session no process may be left, `verify` must pass, and no more nodes may be lost than the fault has damaged.
A finished life must have the tables of an undisturbed one bit for bit, or a bound within its interval.  Memory, open
files and processes must not rise.
"""

import json
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import rich_click as click
from soak_troubles import APART, BLOCKS, COMMON, CONCLUDING, FAILED, SoakRun, Trouble, checkpoints_of
from soak_world import Command, HeldAtOnce, SoakPlace, left_running, nodes_of, run_command, same_bits

DISK_BYTES, SHARED_BYTES = 4_000_000_000, 3_000_000_000
_MOST_SESSIONS = 60  # limit for one life, which normally has far fewer
_RISES = 1.25  # allowed rise of a life's memory, files and processes from the first lives to the last
_LIVES = 3  # smallest number of lives in the first and in the last third for this comparison

HOLDEM = """[game]
name = "holdem"
[game.menu]
first = ["1p", "allin"]
later = ["1p", "allin"]
[abstraction]
path = "abstractions/{cards}"
recipe = "abstractions/{cards}.toml"
"""
FINE = (
    HOLDEM.format(cards="fine")
    + """[run]
workers = 2
nodes = 1e9
checkpoint_nodes = 1e8
[evaluation]
method = "lbr"
hands = 500
every_checkpoint = false
[export]
"""
)
TURNS = (
    HOLDEM.format(cards="quick")
    + """[solver]
negative_regret_pruning = true
[tables]
memory_budget = "60MB"
[run]
strata = 16
blocks = 8
cycle_iterations = 250_000
workers = 2
nodes = 4e8
checkpoint_nodes = 3e7
[evaluation]
at_end = false
every_checkpoint = false
"""
)
MACHINES = """[game]
name = "leduc"
ranks = 12
merge_suits = true
[run]
strata = 6
nodes = 4e7
checkpoint_nodes = 4e6
[evaluation]
at_end = false
every_checkpoint = false
"""


@dataclass(frozen=True)
class Subject:
    """A run that is disturbed repeatedly.

    Attributes:
        begin, go_on: words of the commands before the configuration, and before the run directory
        bits:         True if each life must end with the same tables bit for bit; else its bound is compared
    """

    name: str
    document: str
    troubles: Sequence[Trouble]
    begin: Sequence[str] = ("solve",)
    go_on: Sequence[str] = ("resume",)
    bits: bool = True


SUBJECTS = (
    Subject("blueprint", FINE, (*COMMON, *CONCLUDING), bits=False),
    Subject("out of core", TURNS, (*COMMON, *BLOCKS)),
    Subject("two machines", MACHINES, COMMON, ("cluster", "local", "--machines", "2"), ("cluster", "local")),
)


@dataclass
class Tally:
    """Counts of faults, exit statuses and resources, and sentences on violations."""

    struck: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    statuses: dict[str, Counter[int]] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    lives: Counter[str] = field(default_factory=Counter)
    levels: dict[str, list[HeldAtOnce]] = field(default_factory=dict)

    def add(self, trouble: Trouble, struck: bool, status: int) -> None:
        (self.struck if struck else self.missed)[trouble.what] += 1
        self.statuses.setdefault(trouble.what, Counter())[status] += 1

    def violated(self, text: str) -> None:
        self.violations.append(text)
        print(f"VIOLATED: {text}", file=sys.stderr, flush=True)

    def table(self) -> str:
        """Return the counts as Markdown tables for the documentation."""
        rows = ["| fault | times | too late | exit status of the session: times |", "|---|---|---|---|"]
        for what in sorted(self.statuses):
            found = ", ".join(f"{status}: {times}" for status, times in sorted(self.statuses[what].items()))
            rows.append(f"| {what} | {self.struck[what]} | {self.missed[what]} | {found} |")
        rows += ["", "| run | lives | memory of its processes, MB | open files | processes |", "|---|---|---|---|---|"]
        for name, levels in self.levels.items():
            most = [sorted(level[i] for level in map(_numbers, levels)) for i in range(3)]
            shown = [f"{values[0]} to {values[-1]}" for values in most]
            rows.append(f"| {name} | {self.lives[name]} | {' | '.join(shown)} |")
        return "\n".join([*rows, "", f"{sum(self.struck.values())} faults, {len(self.violations)} violations"])


_HELD = ("memory", "files", "processes")


def _numbers(level: HeldAtOnce) -> tuple[int, int, int]:
    return level.anonymous_bytes // 10**6, level.files, level.processes


class Soak:
    """A soak test in a folder."""

    def __init__(self, place: SoakPlace, subjects: Sequence[Subject], seed: int) -> None:
        self.place, self.subjects, self.random, self.tally = place, subjects, random.Random(seed), Tally()
        self._seconds: dict[str, float] = {}
        self._undisturbed: dict[str, HeldAtOnce] = {}
        self._decks: dict[str, list[Trouble]] = {}

    def references(self) -> None:
        """Run one life of each run without faults; its duration sets the times of faults."""
        code, output = run_command(self.place, "init", "runs")
        for subject in self.subjects:
            config = self.place.folder / "runs" / f"{_file(subject)}.toml"
            config.write_text(subject.document)
            directory = self.place.folder / f"{_file(subject)}-undisturbed"
            begun = time.monotonic()
            if not (directory / "checkpoints").exists():
                _say(f"{subject.name}: a life without faults")
                self.place.level = HeldAtOnce()
                code, output = run_command(self.place, "solve", config, "--run", directory)
                self._undisturbed[subject.name] = self.place.level
                _say("it used {:,} MB, {} open files, {} processes".format(*_numbers(self.place.level)))
                if code != 0:
                    raise click.ClickException(f"{subject.name} ended with {code}: {output[-2000:]}")
                (directory.with_suffix(".json")).write_text(json.dumps(time.monotonic() - begun))
            self._seconds[subject.name] = min(json.loads(directory.with_suffix(".json").read_text()), 60.0)

    def life(self, subject: Subject, end: float) -> None:
        """Run one life of a run, with a fault in each session, until it is trained or the time is over."""
        directory = self.place.disk / f"{_file(subject)}-{self.tally.lives[subject.name]}"
        run = SoakRun(self.place, directory, self.random)
        self.place.level = HeldAtOnce()
        for _ in range(_MOST_SESSIONS):
            if time.monotonic() > end or self._session(subject, run):
                break
        else:
            self.tally.violated(f"{subject.name} does not end")
        self._end_of_life(subject, run, finished=time.monotonic() <= end)

    def _session(self, subject: Subject, run: SoakRun) -> bool:
        """Run one session with its fault; return whether the run has finished."""
        trouble, before = self._next(subject, run), nodes_of(run.directory)
        struck = trouble.before is None or trouble.before(run)
        if run.damaged:
            self._verified(subject, run, damaged=True)
        known = nodes_of(run.directory, run.falls)
        with _around(trouble, run):
            command = self._command(subject, run)
            if trouble.moment is not None and trouble.strike is not None:
                struck = trouble.moment(run, command, self._seconds[subject.name])
                if struck:
                    trouble.strike(run, command)
            status, output = command.end()
        self.tally.add(trouble, struck, status)
        where = f"{subject.name}, {trouble.what}"
        _say(f"{where}{'' if struck else ' (too late)'}: {status}, {nodes_of(run.directory):,} nodes")
        if status not in trouble.statuses or "Traceback" in output:
            self.tally.violated(f"{where}: ended with {status}: {output[-1500:]}")
        if left := left_running(self.place):
            self.tally.violated(f"{where}: processes are left: {left}")
        if (reached := nodes_of(run.directory)) < min(known, before):
            self.tally.violated(f"{where}: {before:,} nodes became {reached:,}")
        self._verified(subject, run)
        run.falls = 0
        return status == 0

    def _next(self, subject: Subject, run: SoakRun) -> Trouble:
        """Return the next fault: each occurs once before any occurs again.

        Faults that change checkpoints wait until there are two of them.
        """
        deck, early = self._decks.setdefault(subject.name, []), len(checkpoints_of(run)) < 2
        while not (fitting := [trouble for trouble in deck if trouble.before is None or not early]):
            every = [*subject.troubles, *(APART if self.place.apart else ())]
            deck += self.random.sample(every, len(every))
        deck.remove(fitting[0])
        return fitting[0]

    def _command(self, subject: Subject, run: SoakRun) -> Command:
        if (run.directory / "manifest.json").exists():
            return Command(self.place, *subject.go_on, run.directory)
        config = self.place.folder / "runs" / f"{_file(subject)}.toml"
        return Command(self.place, *subject.begin, config, "--run", run.directory)

    def _verified(self, subject: Subject, run: SoakRun, *, damaged: bool = False) -> None:
        """Check that `verify` reports the injected damage and nothing else."""
        if not (run.directory / "manifest.json").exists():
            return
        for path in (run.directory, *((run.policy,) if run.policy.exists() else ())):
            code, output = run_command(self.place, "verify", path)
            lines = [line for line in output.splitlines() if line and not line.startswith("reading ")]
            named = [line for line in lines if any(name in line for name in run.damaged)]
            if damaged and path == run.directory and (code != FAILED or not named):
                self.tally.violated(f"{subject.name}: {run.damaged} is damaged, and verify says: {output}")
            elif lines not in ([f"{path}: sound"], named or None):
                self.tally.violated(f"{subject.name}: {path.name} is not sound: {output}")

    def _end_of_life(self, subject: Subject, run: SoakRun, *, finished: bool) -> None:
        if finished:
            self.tally.lives[subject.name] += 1
            self.tally.levels.setdefault(subject.name, []).append(self.place.level)
            undisturbed = self.place.folder / f"{_file(subject)}-undisturbed"
            if subject.bits:
                if not same_bits(run.directory, undisturbed):
                    self.tally.violated(f"{subject.name}: other bits than undisturbed")
            elif (problem := _apart(_bound(run.directory), _bound(undisturbed))) is not None:
                self.tally.violated(f"{subject.name}: {problem}")
        if self.tally.violations and run.directory.exists():  # copied, to find the cause
            shutil.copytree(run.directory, self.place.folder / "violated", dirs_exist_ok=True)
        for path in (run.directory, run.policy):
            shutil.rmtree(path, ignore_errors=True)

    def left_over(self) -> None:
        """Check at the end that no temporary files are left and that resources have not risen.

        A rise is measured against the first lives and the undisturbed one.
        """
        for folder in (self.place.folder / "tmp", *((self.place.shared,) if self.place.apart else ())):
            if len(left := sorted(path.name for path in folder.iterdir())) > len(self.subjects):
                self.tally.violated(f"{len(left)} files or folders are left in {folder}: {left[:5]}")
        for name, levels in self.tally.levels.items():
            third = len(levels) // 3
            if third >= _LIVES:
                ends = map(_usual, (levels[:third], levels[-third:]))
                whole = _numbers(self._undisturbed.get(name, HeldAtOnce()))
                for first, last, most, what in zip(*ends, whole, _HELD, strict=True):
                    if last > _RISES * max(first, most):
                        self.tally.violated(f"{name}: {what} rose from {first} to {last}")


def _usual(levels: Sequence[HeldAtOnce]) -> list[float]:
    """Return medians over lives, because the maximum of a short life may not be observed."""
    return [median(values) for values in zip(*map(_numbers, levels), strict=True)]


@contextmanager
def _around(trouble: Trouble, run: SoakRun) -> Iterator[None]:
    if trouble.around is None:
        yield
    else:
        with contextmanager(trouble.around)(run):
            yield


def _file(subject: Subject) -> str:
    return subject.name.replace(" ", "-")


def _bound(directory: Path) -> Mapping[str, Any]:
    """Return the newest evaluation of a run."""
    found: Mapping[str, Any] = json.loads((directory / "evaluations.jsonl").read_text().splitlines()[-1])
    return found


def _apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    """Return a sentence if the intervals of two bounds do not overlap, else None."""
    (low, high), (least, most) = one["ci95_mbb"], other["ci95_mbb"]
    if low > most or least > high:
        return f"lbr wins {low:.0f} to {high:.0f} mbb/g, and {least:.0f} to {most:.0f} in a life without faults"
    return None


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


@click.command(help=__doc__)
@click.argument("minutes", type=click.FloatRange(min=0, min_open=True))
@click.option("--folder", type=click.Path(path_type=Path), default=Path("soak"), help="It is kept. [default: soak]")
@click.option("--seed", type=int, default=0, help="Seed of the kinds and times of faults. [default: 0]")
@click.option("--only", multiple=True, help="blueprint, out of core or two machines; default: all.")
def main(minutes: float, folder: Path, seed: int, only: Sequence[str]) -> None:
    place = SoakPlace.make(folder.resolve(), DISK_BYTES, SHARED_BYTES)
    if not place.apart:
        _say("file systems cannot be mounted here: the test does not fill disk and shared memory")
    soak = Soak(place, [subject for subject in SUBJECTS if not only or subject.name in only], seed)
    soak.references()
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        for subject in soak.subjects:
            soak.life(subject, end)
    soak.left_over()
    print(soak.tally.table())
    sys.exit(1 if soak.tally.violations else 0)


if __name__ == "__main__":
    main()
