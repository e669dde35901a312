"""Commands read documents with a value of another type: null, [], 5, "x" or true.

A test replaces a whole document or one of its values. The documents are manifests and states of runs and policies, with
new checksums, and files that commands write for themselves: match logs, `--keep` files, hands. A command that reads one
ends with status 0, or with status 1 or 2 and one sentence. The fast suite draws six places of each document, and for
each a value and a command; the slow suite takes all.

Shows:

* No document of another type ends a command with a traceback (test_no_replaced_document_ends_in_a_traceback,
  test_no_replaced_line_ends_in_a_traceback, test_no_replaced_hand_ends_in_a_traceback)
"""

import json
import shlex
import shutil
from random import Random

import pytest
from acpc import dealer, plan
from commands import command
from manifests import rewrite
from policies import write_random
from sessions import make, trained

from mccfr.config.game_tables import HoldemGame, KuhnGame
from mccfr.matches.hand_files import read_hands
from mccfr.matches.hand_files.writing import write_hands

VALUES = (None, [], 5, "x", True)
BOTH = pytest.mark.parametrize("some", [6, pytest.param(None, marks=pytest.mark.slow)], ids=["sample", "all"])
POLICY_VERBS = ("verify", "query", "evaluate", "report", "exploit", "play", "match")
ON_RUNS = (
    """
verify run|status run|status run --json|query run ''|evaluate run|tensorboard run out|export run out
report run out.html|exploit run out|play run --hands 1 --seed 1|match run always-call --hands 200
resume run --iterations 4|solve run.toml --run run --iterations 4
""".strip()
    .replace("\n", "|")
    .split("|")
)
ON_POLICIES = [
    *(line.replace(" run", " policy") for line in ON_RUNS if line.split()[0] in POLICY_VERBS),
    "evaluate policy --method head-to-head --against policy",
    "review policy --policy policy",
    "export run policy --replace",
]
DOCUMENTS = {
    "run": ("run/manifest.json", ON_RUNS),
    "checkpoint": ("run/checkpoints/000001/manifest.json", ON_RUNS),
    "state": ("run/checkpoints/000001/state.json", ON_RUNS),
    "policy": ("policy/meta.json", ON_POLICIES),
}
LOG = plan(hands=2)
KEPT = {
    "match": "match policy always-call --hands 200 --keep file",
    "evaluate": "evaluate policy --method lbr --hands 100 --workers 1 --keep file",
    "dealer": "dealer --with random --with min-raise --hands 2 --log file",
}
"""Commands that write a file of lines and read it when they are called again."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A run and a policy of Kuhn poker."""
    root = tmp_path_factory.mktemp("sound")
    trained(make(root / "run", {"algorithm": "cfr"}, "kuhn"), iterations=3)
    shutil.copy(root / "run/config.toml", root / "run.toml")
    write_random(root / "policy", KuhnGame())
    return root


@pytest.fixture
def place(sound, tmp_path, monkeypatch):
    shutil.copytree(sound, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def replaced(document):
    """Yield a list for the document and for each nested value, with each of `VALUES` in its place."""
    yield [*VALUES]
    for key, old in document.items():
        yield [{**document, key: value} for value in VALUES]
        for inner in old if isinstance(old, dict) and key != "files" else ():
            yield [{**document, key: {**old, inner: value}} for value in VALUES]


def difference(document, changed):
    """Return the change of a document, for messages."""
    if not isinstance(changed, dict):
        return changed
    return {key: value for key, value in changed.items() if value != document[key] or value is True}


def chosen(random, places, some):
    """Return one case of each of `some` random places; with None: all cases."""
    if some is None:
        return [case for cases in places for case in cases]
    return [random.choice(cases) for cases in random.sample(places, min(some, len(places)))]


def problem(capsys, line):
    """Return the problem with a command's end, or None."""
    capsys.readouterr()
    try:
        status = command(*shlex.split(line))
    except Exception as error:
        return f"{line}: {error!r}"
    out, errors = capsys.readouterr()
    last = (errors.splitlines() or [""])[-1]
    is_clear = last.startswith("mccfr: ") or (line.startswith("verify") and status == 1 and out)  # verify lists faults
    fine = status == 0 or (status in (1, 2) and is_clear and "Traceback" not in errors)
    return None if fine else f"{line}: {status} {errors}"


@BOTH
@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_replaced_document_ends_in_a_traceback(sound, place, capsys, name, some):
    file, verbs = DOCUMENTS[name]
    random, wrong = Random(name), []
    document = json.loads((place / file).read_bytes())
    document.pop("content_hash", None)
    for changed in chosen(random, list(replaced(document)), some):
        for verb in verbs if some is None else random.sample(verbs, 1):
            for out in ("run", "policy", "out"):
                shutil.rmtree(place / out, ignore_errors=True)
            for kept in ("run", "policy"):
                shutil.copytree(sound / kept, place / kept)
            rewrite(place / file, changed)
            found = problem(capsys, verb)
            wrong += [f"{difference(document, changed)}: {found}"] if found else []
    assert not wrong, "\n".join(wrong)


def replaced_lines(text):
    """Yield lists of texts in which a line's JSON, or one of its values, is replaced."""
    lines = text.split("\n")
    for number, line in enumerate(lines[:4]):
        start = min((line.index(sign) for sign in "{[" if sign in line), default=None)
        if start is None:
            continue
        try:
            document = json.loads(line[start:])
        except ValueError:
            continue
        whole = replaced(document) if isinstance(document, dict) else [[*VALUES]]
        for changes in whole:
            texts = [line[:start] + json.dumps(changed) for changed in changes]
            yield ["\n".join([*lines[:number], changed, *lines[number + 1 :]]) for changed in texts]


@BOTH
@pytest.mark.parametrize("name", KEPT)
def test_no_replaced_line_ends_in_a_traceback(place, capsys, name, some):
    random, wrong = Random(name), []
    assert problem(capsys, KEPT[name]) is None
    path = place / "file"
    for changed in chosen(random, list(replaced_lines(path.read_text("latin-1"))), some):
        path.write_text(changed, "latin-1")
        found = problem(capsys, KEPT[name])
        wrong += [f"{changed[:300]}: {found}"] if found else []
    assert not wrong, "\n".join(wrong)


def hand_files(folder):
    """Yield hands as PHH and as Slumbot's JSON, with one value replaced."""
    at = dealer(LOG, ("random", "min-raise"))
    write_hands(folder / "a.phhs", [at.play(0).hand()], HoldemGame())
    lines = (folder / "a.phhs").read_text().splitlines()
    for number, line in enumerate(lines):
        key, equals, _ = line.partition(" = ")
        if equals:
            for value in ("[]", "5", '"x"', "true", "{}"):
                yield "\n".join([*lines[:number], f"{key} = {value}", *lines[number + 1 :]])
    answer = {"client_pos": 1, "hole_cards": ["5c", "4s"], "bot_hole_cards": ["As", "7d"], "action": "b200c/kb300f"}
    for changes in replaced({**answer, "board": ["Qs", "7h", "2d"], "winnings": 200}):
        yield from map(json.dumps, changes)


def test_no_replaced_hand_ends_in_a_traceback(tmp_path):
    path, tried = tmp_path / "hands", 0
    for text in hand_files(tmp_path):
        path.write_text(text)
        try:
            messages = [found.why for found in read_hands(path, HoldemGame()) if found.hand is None]
        except ValueError as error:
            messages = [str(error)]
        assert all(0 < len(each) < 300 for each in messages), (text, messages)
        tried += bool(messages)
    assert tried > 30
