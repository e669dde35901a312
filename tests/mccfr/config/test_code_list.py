"""User code: it runs only if `--code` or the user's own list allows it.

Shows:

* Opening another person's run or policy runs no code from it (test_no_command_runs_a_module_of_another_persons_run,
  test_no_command_on_another_persons_policy_runs_code)
* Users need no `--code` for their own runs until the code changes (test_all_commands_load_the_users_own_code,
  test_after_an_edit_the_code_must_be_allowed_again)
"""

import importlib.util
import json
import os
import py_compile
import shutil
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from commands import call, command, refusal
from guests import forget, forgetting
from manifests import forge, forge_document

from mccfr.config import code_list, plugins
from mccfr.config.code_import import importer
from storage.manifest import content_hash

GAME = """
from bluffs_help import DECK
from mccfr import Game
from mccfr.games.poker import leduc
from mccfr.config.game_tables import LeducGame

def mine(size: int = 3) -> Game:
    "Leduc hold'em by another name."
    return leduc(LeducGame())
"""
CONFIG = '[game]\nname = "bluffs:mine"\n[solver]\nalgorithm = "cfr"\n[run]\nworkers = 0\niterations = 5\n'
MARK = "import pathlib\npathlib.Path({mark!r}).touch()\n"


@pytest.fixture(autouse=True)
def own_list(tmp_path, monkeypatch):
    """Give each test its own list of code, and unload imported modules after it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with forgetting(tmp_path, monkeypatch):
        yield
    plugins.allow(())


@pytest.fixture
def own(tmp_path):
    """The folder of a user's game, which imports another module, with a run of the game."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "bluffs.py").write_text(GAME)
    (folder / "bluffs_help.py").write_text("DECK = 3\n")
    (folder / "run.toml").write_text(CONFIG)
    assert command("solve", folder / "run.toml", "--run", folder / "run") == 0
    forget("bluffs", "bluffs_help")
    return folder


@pytest.fixture
def taken():
    """A port that another socket occupies."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def loading_commands(run, out, taken):
    """Return all commands that load the user code of a run or policy, with their arguments."""
    log = out.with_suffix(".log")
    log.write_text("")
    return [
        ("evaluate", run),
        ("evaluate", run, "--method", "head-to-head"),
        ("export", run, out / "policy"),
        ("resume", run, "--iterations", 6),
        ("exploit", run, out / "exploit", "--share", "50%", "--to", "50%"),
        ("tensorboard", run, out / "tensorboard"),
        ("query", run, ""),
        ("report", run, out / "report.csv", "--spots", "x"),
        ("match", run, "always-call", "--hands", 2),
        ("rank", run, "always-call", "random", "--hands", 2),
        ("view", run, "--no-browser", "--port", taken),
        ("play", run, "--hands", 1),
        ("review", log, "--policy", run),
        ("bot", "acpc", run, "127.0.0.1", 1, "--patience", "0"),
        ("cluster", "resume", run),
        ("cluster", "status", run),
        ("dealer", "--with", run, "--hands", 1, "--port", taken),
    ]


def test_no_command_runs_a_module_of_another_persons_run(own, taken, tmp_path, capsys, monkeypatch):
    """Forge a sound manifest that names all folders with the module; Python would find it too."""
    archive, mark = tmp_path / "archive", tmp_path / "mark"
    shutil.copytree(own, archive)
    (archive / "bluffs.py").write_text(MARK.format(mark=str(mark)) + GAME)
    (archive / "link").symlink_to(archive)
    run = archive / "run"
    for name in ("code-name-bluffs.py", "bluffs.py"):
        shutil.copy(archive / "bluffs.py", run / "inputs" / name)
    opened, hashed = os.open(archive, os.O_RDONLY), plugins.Source("", archive / "bluffs.py").sha256
    folders = [archive, archive / "link", run / "inputs", "inputs", ".", ""]
    folders += ["/proc/self/cwd", f"/proc/self/fd/{opened}"]

    def forge_manifest(content):
        content["code_folders"] = list(map(str, folders))
        content["code_sha256"] = content["identity_document"]["code"] = {"bluffs:mine": hashed}
        content["identity"] = content_hash(content["identity_document"])

    forge_document(run / "manifest.json", forge_manifest)
    identity = json.loads((run / "manifest.json").read_bytes())["identity"]
    checkpoint, journal = run / "checkpoints/000001/manifest.json", run / "journal.jsonl"
    before = json.loads(checkpoint.read_bytes())["content_hash"]
    forge(checkpoint.parent, lambda content: content["identity"].update(run_identity=identity))
    journal.write_text(journal.read_text().replace(before, json.loads(checkpoint.read_bytes())["content_hash"]))
    monkeypatch.chdir(archive)
    monkeypatch.syspath_prepend(archive)
    monkeypatch.setenv("PYTHONPATH", str(archive))
    (tmp_path / "out").mkdir()
    for arguments in loading_commands(run, tmp_path / "out", taken):
        ended = call(capsys, *arguments)
        assert ended.status == 2 and "bluffs" not in sys.modules and not mark.exists(), (arguments, ended)
        assert ended.err.count("\n") == 1 and "Traceback" not in ended.err, (arguments, ended)
    view = [sys.executable, "-m", "mccfr", "view", run, "--no-browser", "--port", str(taken)]
    ended = subprocess.run(view, capture_output=True, text=True, check=False)
    assert ended.returncode == 2 and "--code DIR" in ended.stderr and not mark.exists(), ended
    for arguments in ("verify", run), ("status", run), ("status", archive):
        assert command(*arguments) == 0 and not mark.exists(), arguments
    assert "--code DIR" in refusal(capsys, "query", run, "")
    assert command("query", run, "", "--code", archive) == 0 and mark.exists()  # the planted mark works
    os.close(opened)


def test_no_command_on_another_persons_policy_runs_code(own, taken, tmp_path, capsys, monkeypatch):
    policy, mark = tmp_path / "policy", tmp_path / "mark"
    assert command("export", own / "run", policy) == 0
    forget("bluffs", "bluffs_help")
    for path in own.glob("*.py"):
        path.write_text(MARK.format(mark=str(mark)))
    monkeypatch.syspath_prepend(own)
    for arguments in loading_commands(policy, tmp_path / "out", taken):
        ended = call(capsys, *arguments)
        assert "Traceback" not in ended.err and "bluffs" not in sys.modules and not mark.exists(), (arguments, ended)


def test_all_commands_load_the_users_own_code(own, taken, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    for arguments in loading_commands(own / "run", out, taken):
        forget("bluffs", "bluffs_help")
        ended = call(capsys, *arguments)
        assert "--code" not in ended.err, (arguments, ended)
        assert "bluffs" in sys.modules or arguments[0] == "cluster", (arguments, ended)


def test_after_an_edit_the_code_must_be_allowed_again(own, capsys):
    """Edit an imported module, which the run itself does not name."""
    run, helper = own / "run", own / "bluffs_help.py"
    helper.write_text("DECK = 4\n")
    message = refusal(capsys, "query", run, "")
    assert f"{helper} has changed since you ran it" in message and "--code DIR" in message
    assert command("query", run, "", "--code", own) == 0
    forget("bluffs", "bluffs_help")
    assert command("query", run, "") == 0  # --code has added the code to the list
    forget("bluffs", "bluffs_help")
    helper.unlink()
    assert f"{helper} cannot be read" in refusal(capsys, "query", run, "")


def test_no_other_file_of_the_folder_is_imported(own, tmp_path, capsys):
    """Add a module that the code would import now, and compiled code in the cache: neither is imported."""
    mark = tmp_path / "mark"
    (own / "bluffs.py").write_text("try:\n    import fast_help\nexcept ImportError:\n    pass\n" + GAME)
    assert command("solve", own / "run.toml", "--run", own / "other") == 0
    (own / "fast_help.py").write_text(MARK.format(mark=str(mark)))
    forget("bluffs", "bluffs_help")
    assert command("query", own / "other", "") == 0 and not mark.exists()
    forget("bluffs", "bluffs_help")
    evil = tmp_path / "evil.py"
    evil.write_text(MARK.format(mark=str(mark)) + "DECK = 3\n")
    name = importlib.util.cache_from_source(str(own / "bluffs_help.py"))
    Path(name).parent.mkdir(exist_ok=True)
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH  # Python does not compare it with its source
    py_compile.compile(str(evil), name, invalidation_mode=unchecked)
    assert command("query", own / "other", "") == 0 and not mark.exists()


def test_a_module_that_changes_after_its_comparison_is_not_run(own, tmp_path, monkeypatch):
    """Change a module between its comparison and its import: the old content runs."""
    content, mark = code_list.CodeEntry.content, tmp_path / "mark"

    def swapped(entry):
        found = content(entry)
        (own / "bluffs_help.py").write_text(MARK.format(mark=str(mark)))
        return found

    monkeypatch.setattr(code_list.CodeEntry, "content", swapped)
    assert command("query", own / "run", "") == 0 and not mark.exists()
    assert import_module("bluffs_help").DECK == 3


@pytest.mark.parametrize("spoil", ["writable", "file", "absent"])
def test_without_a_list_the_code_must_be_allowed(own, tmp_path, capsys, monkeypatch, spoil):
    """The list is a folder that others may write to, or no folder, or absent."""
    folder = tmp_path / "config/mccfr/code"
    if spoil == "writable":
        folder.chmod(0o777)
    elif spoil == "file":
        monkeypatch.setenv("XDG_CONFIG_HOME", str(own / "run.toml"))
    else:
        shutil.rmtree(folder)
    message = refusal(capsys, "query", own / "run", "")
    why = {"writable": "others may write to", "file": "run.toml/mccfr", "absent": "not in your list of code"}
    assert why[spoil] in message and "--code DIR" in message
    assert command("query", own / "run", "", "--code", own) == 0
    forget("bluffs", "bluffs_help")
    assert command("query", own / "run", "") == (0 if spoil == "absent" else 2)


def test_only_the_user_can_read_the_list(own, tmp_path):
    (entry,) = (tmp_path / "config/mccfr/code").iterdir()
    assert entry.stat().st_mode & 0o777 == 0o600 and entry.parent.stat().st_mode & 0o777 == 0o700
    found = json.loads(entry.read_bytes())
    assert (found["module"], found["folder"]) == ("bluffs", str(own))
    assert sorted(found["files"]) == ["bluffs.py", "bluffs_help.py"]


def test_modules_imported_later_and_before_are_listed_too(tmp_path, monkeypatch):
    """List modules imported by a function, by the user's program, and from another folder of the path."""
    game = GAME.replace("from bluffs_help import DECK", "").replace("return", "import late_part\n    return")
    searches = f"import sys\nsys.path.insert(0, {str(tmp_path / 'lib')!r})\nimport early_part\n"
    (tmp_path / "late_games.py").write_text(searches + game)
    (tmp_path / "early_part.py").write_text("")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/late_part.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    import_module("early_part")
    (tmp_path / "run.toml").write_text(CONFIG.replace("bluffs", "late_games"))
    assert command("solve", tmp_path / "run.toml", "--run", tmp_path / "run") == 0
    listed = [json.loads(path.read_bytes())["files"] for path in code_list.list_folder().iterdir()]
    assert sorted(max(listed, key=len)) == ["early_part.py", "late_games.py", "lib/late_part.py"]


def test_an_import_of_unlisted_files_is_caught(own, tmp_path, monkeypatch):
    """Plant an error: any file in the folders of the list may be imported."""
    monkeypatch.setattr(importer, "watch", lambda folder, top, _: type(importer).watch(importer, folder, top, None))
    monkeypatch.setattr(code_list.CodeEntry, "content", lambda _: {})
    mark = tmp_path / "mark"
    (own / "bluffs_help.py").write_text(MARK.format(mark=str(mark)) + "DECK = 3\n")
    assert command("query", own / "run", "") == 0 and mark.exists()
