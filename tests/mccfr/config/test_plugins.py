"""User-defined games, algorithms, variants and methods named as `module:object` in a configuration.

Shows:

* Runs and workers find the user's module, and refuse another of that name
  (test_runs_and_workers_find_their_module_and_refuse_another)
* Opening a policy imports no user code (test_a_policy_needs_no_code_and_imports_none)
"""

import csv
import json
import shutil
import sys

import pytest
import tomli_w
from commands import command, refusal
from guests import forget, forgetting
from refusals import refusals, refused

import mccfr
from mccfr.config import plugins
from mccfr.config.code_import import importer
from mccfr.config.toml_files import config_from, load_config
from mccfr.games.registry import build_game
from mccfr.runs.directory.run import open_run

GAME = """
from pathlib import Path
from mccfr import Game
from mccfr.games.poker import kuhn
from mccfr.config.game_tables import KuhnGame

def mine(size: int = 3) -> Game:
    "Kuhn poker by another name."
    return kuhn(KuhnGame())

def silent(size: int = 3):
    return kuhn(KuhnGame())

def wrong() -> Game:
    return 3

def bare(size) -> Game: ...
def named(name: str) -> Game: ...
def strange(size: 3) -> Game: ...
"""
CONFIG = '[game]\nname = "{module}:mine"\n[solver]\nalgorithm = "cfr"\n[run]\nworkers = {workers}\niterations = 20\n'


@pytest.fixture(autouse=True)
def forgotten(tmp_path, monkeypatch):
    """Unload modules imported from the test's folder after the test."""
    path = list(sys.path)
    with forgetting(tmp_path, monkeypatch):
        yield
    sys.path[:] = path


def solved(folder, module, run="run"):
    """Solve the game of a module beside its configuration; return the run's directory."""
    (folder / f"{module}.py").write_text(GAME)
    (folder / "run.toml").write_text(CONFIG.format(module=module, workers=0))
    assert command("solve", folder / "run.toml", "--run", folder / run) == 0
    return folder / run


def test_modules_beside_the_configuration_come_first_and_hide_nothing_else(tmp_path):
    """Find a file with the name of a standard module from its configuration only."""
    (tmp_path / "colorsys.py").write_text(GAME)
    (tmp_path / "run.toml").write_text(CONFIG.format(module="colorsys", workers=0))
    sys.modules.pop("colorsys", None)
    assert build_game(load_config(tmp_path / "run.toml").game, tmp_path).name == "kuhn"
    assert importer.searched == [str(tmp_path)] and str(tmp_path) not in sys.path
    other = tmp_path / "other"
    other.mkdir()
    (other / "colorsys.py").write_text(GAME)
    with pytest.raises(
        ValueError, match=r"colorsys:mine': /\S+/other/colorsys.py cannot be imported beside .*colorsys.py, which has"
    ):
        config_from({"game": {"name": "colorsys:mine"}}, "x", (other,))


def named(name, tmp_path):
    for module, text in {"games_x": GAME, "broken_x": "1 / 0", "needy_x": "import nowhere_at_all"}.items():
        (tmp_path / f"{module}.py").write_text(text)
    message = refused("^my.toml: game.name = ", config_from, {"game": {"name": name}}, "my.toml", (tmp_path,))
    raise ValueError(message.replace(str(tmp_path), "HERE"))


def solved_by(**solver):
    config_from({"game": {"name": "kuhn"}, "solver": solver}, "x", ())


test_invalid_names_of_user_code_are_refused = refusals(
    ("games_x.py has no 'none'", named, "games_x:none"),
    ("there is no module 'games_y' in HERE, the directories of PYTHONPATH", named, "games_y:mine"),
    ("there is no module 'games_x.part' in HERE", named, "games_x.part:mine"),
    ("is not written as module:object", named, "games x:mine"),
    ("is not written as module:object", named, "games_x:" + "m" * 5000),
    ("is not written as module:object", named, "../games_x:mine"),
    ("importing broken_x failed: ZeroDivisionError: division by zero", named, "broken_x:mine"),
    ("importing needy_x failed: No module named 'nowhere_at_all'", named, "needy_x:mine"),
    ("its parameter 'size' needs an annotation: it is a key of [game]", named, "games_x:bare"),
    ("its parameter 'name' is reserved for the game's name: rename it", named, "games_x:named"),
    ("its parameters cannot be keys of a TOML file", named, "games_x:strange"),
    ("is not a function that returns a game", named, "games_x:Path"),
    ("'toys:own_dcfr' has no effect on solver.algorithm = 'external", lambda: solved_by(variant="toys:own_dcfr")),
    ("is not an algorithm: a class derived from", lambda: solved_by(algorithm="toys:Mixed")),
    ("is not one of: ", lambda: solved_by(algorithm="nope")),
)


def test_only_functions_annotated_to_return_a_game_are_called(tmp_path):
    (tmp_path / "games_z.py").write_text(GAME)
    for name, message in (
        ("games_z:silent", "does not say that it returns a game: annotate it with -> mccfr.Game"),
        ("games_z:wrong", "returned a int; an mccfr.Game is needed"),
    ):
        config = config_from({"game": {"name": name}}, "my.toml", (tmp_path,))
        refused(message, build_game, config.game, tmp_path)
    with pytest.raises(ValueError, match="its parameter 'command' needs an annotation"):
        config_from({"game": {"name": "os:system", "command": "true"}}, "my.toml", ())


def test_runs_and_workers_find_their_module_and_refuse_another(tmp_path, monkeypatch, capsys):
    folder, directory = tmp_path / "configs", tmp_path / "run"
    folder.mkdir()
    module = folder / "games_w.py"
    module.write_text(GAME)
    (folder / "run.toml").write_text(CONFIG.format(module="games_w", workers=1))
    assert command("solve", folder / "run.toml", "--run", directory) == 0
    manifest = json.loads((directory / "manifest.json").read_text())
    assert manifest["identity_document"]["code"] == manifest["code_sha256"]
    assert manifest["code_sha256"] == {"games_w:mine": plugins.Source("", module).sha256}
    assert (directory / "inputs/code-name-games_w.py").read_text() == GAME
    forget("games_w")
    assert command("resume", directory, "--iterations", 30, "--workers", 0) == 0
    module.write_text(GAME + "# changed\n")
    message = refusal(capsys, "resume", directory, "--iterations", 40)
    assert f"{module} has changed since {directory} was created: restore it" in message
    assert command("solve", folder / "run.toml", "--run", directory) == 2
    forget("games_w")
    for verb in (("resume", directory, "--iterations", 40), ("evaluate", directory), ("query", directory, "")):
        assert "--code DIR" in refusal(capsys, *verb) and "games_w" not in sys.modules, verb
    shutil.copy(directory / "inputs/code-name-games_w.py", module)
    assert command("resume", directory, "--iterations", 40) == 0
    forget("games_w")
    module.rename(tmp_path / "games_w.py")  # the folder of the run's code has it no longer
    monkeypatch.syspath_prepend(tmp_path)  # Python would find it there, but no option allows it
    assert command("evaluate", directory) == 2
    for verb in (("evaluate", directory), ("query", directory, "c"), ("resume", directory, "--iterations", 50)):
        forget("games_w")
        assert command(*verb, "--code", tmp_path) == 0, verb
    plugins.allow(())


def test_status_and_verify_import_no_user_code_and_other_commands_only_allowed_code(tmp_path, capsys, monkeypatch):
    """Name a module, which records its import, in every artefact that can name one."""
    module, mark, run = tmp_path / "games_m.py", tmp_path / "mark", solved(tmp_path, "games_m", "runs/run")
    networks, policy = tmp_path / "networks", tmp_path / "policy"
    assert command("export", run, policy) == 0
    (tmp_path / "deep.toml").write_text(f'game.name = "games_m:mine"{DEEP}')
    assert command("solve", tmp_path / "deep.toml", "--run", tmp_path / "runs/deep") == 0
    assert command("export", tmp_path / "runs/deep", networks) == 0
    module.write_text(f"import os\nos.mkdir({str(mark)!r})\n{GAME}")
    forget("games_m")
    monkeypatch.syspath_prepend(tmp_path)
    capsys.readouterr()
    for verb in ("verify", run), ("status", run), ("status", run.parent), ("verify", networks), ("verify", policy):
        assert command(*verb) == 0, verb
    assert "games_m:mine" in capsys.readouterr().out
    for verb in ("query", run, ""), ("resume", run), ("query", networks, ""), ("evaluate", networks):
        assert "--code DIR" in refusal(capsys, *verb), verb
        assert "games_m" not in sys.modules and not mark.exists(), verb
    assert command("query", policy, "", "--hand", "K") == 0 and not mark.exists()
    assert command("verify", run.parent / "run/checkpoints/000001") == 0 and not mark.exists()
    assert command("query", networks, "", "--code", tmp_path) == 0 and mark.exists()
    plugins.allow(())


def test_an_import_in_verify_is_caught(tmp_path, monkeypatch):
    """Plant an error: `verify` opens runs in the way of commands that train."""
    solved(tmp_path, "games_i")
    forget("games_i")
    assert command("verify", tmp_path / "run") == 0 and "games_i" not in sys.modules
    monkeypatch.setattr("mccfr.runs.directory.verification.open_to_look", lambda *where, **_: open_run(*where))
    assert command("verify", tmp_path / "run") == 0 and "games_i" in sys.modules


def test_user_folders_do_not_replace_modules_of_the_package(tmp_path):
    """A folder of the configuration cannot replace the package `mccfr`."""
    (tmp_path / "mccfr").mkdir()
    (tmp_path / "mccfr/__init__.py").write_text("raise SystemExit('imported')")
    document = {"game": {"name": "mccfr.games.poker:kuhn"}}
    plugins.load_user_code(document, [tmp_path], plugins.NamedCode(tmp_path))
    assert plugins.find(plugins.GAMES, "mccfr.games.poker:kuhn").__module__ == "mccfr.games.poker"


DEEP = """
solver = {algorithm = "deep-cfr", units = 4, steps = 2, batch = 8}
run = {workers = 0, iterations = 1}
evaluation = {at_end = false}
"""


def test_a_policy_needs_no_code_and_imports_none(tmp_path):
    solved(tmp_path, "games_u")
    assert command("export", tmp_path / "run", tmp_path / "policy") == 0
    (tmp_path / "games_u.py").write_text("raise SystemExit('imported')")
    sys.modules.pop("games_u")
    forget()
    policy = mccfr.load_policy(tmp_path / "policy")
    assert policy.meta["game"] == {"name": "games_u:mine", "size": 3}
    assert policy.query("", hand="K")["actions"] and mccfr.evaluate(policy).exploitability_chips < 1
    assert command("verify", tmp_path / "policy") == 0 and "games_u" not in sys.modules


def test_a_game_that_workers_cannot_import_makes_no_run(tmp_path, monkeypatch):
    namespace: dict = {}
    exec(GAME, namespace)
    monkeypatch.setattr(sys.modules["__main__"], "mine", namespace["mine"], raising=False)
    assert mccfr.game("__main__:mine").name == "kuhn"
    with pytest.raises(ValueError, match="a run needs it in a module that workers can import"):
        mccfr.solve({"game": {"name": "__main__:mine"}}, run=tmp_path / "run", iterations=1, workers=0)


def test_experiments_find_modules_beside_their_files(tmp_path):
    base = tmp_path / "base"
    base.mkdir()
    (base / "games_t.py").write_text(GAME)
    (base / "run.toml").write_text(CONFIG.format(module="games_t", workers=0))
    variants = [{"name": name, "set": [f"solver.variant={name}"]} for name in ("toys:own_dcfr", "dcfr")]
    compare = {"base": "base/run.toml", "last": 20, "points": 2, "variant": variants}
    (tmp_path / "experiment.toml").write_text(tomli_w.dumps({"compare": compare}))
    assert command("compare", tmp_path / "experiment.toml", tmp_path / "out") == 0
    with (tmp_path / "out/summary.csv").open(newline="") as file:
        found = [row["geometric_mean"] for row in csv.DictReader(file)]
    assert len(found) == 4 and found[:2] == found[2:] != found[:1] * 2  # own_dcfr has the rule and the powers of dcfr


@pytest.mark.parametrize("package", [True, False])
def test_modules_of_packages_are_found_beside_the_configuration_too(tmp_path, package):
    """With and without `__init__.py`."""
    inner = tmp_path / f"games_of_{package}" / "small"
    inner.mkdir(parents=True)
    (inner / "cards.py").write_text(GAME)
    if package:
        (inner / "__init__.py").write_text("")
        (inner.parent / "__init__.py").write_text("")
    config = config_from({"game": {"name": f"games_of_{package}.small.cards:mine"}}, "my.toml", (tmp_path,))
    assert build_game(config.game, tmp_path).name == "kuhn"
    (source,) = plugins.sources({"game": {"name": config.game.__struct_config__.tag}}).values()
    assert source.file == inner / "cards.py"
