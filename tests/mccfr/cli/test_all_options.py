"""Every option of every command changes something, or is refused.

Shows:

* Each option of each command changes what it runs, or is refused (test_every_option_of_every_command_is_tried,
  test_an_option_has_an_effect)
"""

import contextlib
import pkgutil
import re
import shlex
import shutil
import time
from importlib import import_module
from types import SimpleNamespace

import click
import pytest
from commands import call, command, options

import mccfr.view
from abstraction import buckets, build
from mccfr.cli import bot_commands, cluster_commands, view_command
from mccfr.cli.group import cli
from mccfr.cluster import capacity, cluster_status, launch
from mccfr.config.game_tables import HoldemGame
from mccfr.evaluation import samples
from mccfr.matches import bot_sessions, json_lines
from mccfr.matches.review import review_files, review_text
from mccfr.runs.directory import run as run_directory
from mccfr.runs.directory import run_status
from storage import free_space

SPOT = "--oop AA,QJs --ip KK,T9s --pot 40 --stack 20 --workers 0"
SOLVE = "--nodes 9|--iterations 8|--time 0s|--force"
CLUSTER = f"{SOLVE}|--workers 1|--replace"
BOT = "--purify|--threshold 10%|--resolve river|--seed 7|--log l|--silence 9s"
CASES = {
    "abstraction bucket A --hand AsKd": "--hand 2c2d|--board QsJh2h",
    "abstraction build quick": "--out there|--workers 1|--replace",
    "abstraction info A": "",
    "abstraction strength --hand AsKd --board QsJh2h7c3d": "--hand 2c2d|--board QsJh2h7cTd",
    "bot acpc P 127.0.0.1 9": f"{BOT}|--patience 9s",
    "bot slumbot P --url http://x": f"{BOT}|--url http://y|--hands 9|--user me",
    "bot gtowizard P --url http://x --key-file k": f"{BOT}|--url http://y|--hands 9|--key-file l",
    "bot json P": "--purify|--threshold 10%|--resolve river|--seed 7",
    "cluster local leduc.toml --run s": f"{CLUSTER}|--machines 3|--run t|--set game.ranks=5",
    "cluster solve leduc.toml --hosts a,b --run s": f"{CLUSTER}|--hosts c,d|--run t|--set game.ranks=5",
    "cluster resume strata --hosts a,b": f"{CLUSTER}|--hosts c,d|--abstraction no",
    "cluster status strata": "",
    "compare compare.toml out": "--set compare.last=3|--force",
    "dealer --with random --hands 8": "--players 3|--hands 9|--duplicate|--stack 900|--blinds 5 10|--with min-raise|"
    "--names a,b|--host h|--port 1|--wait 9s|--response 9s|--per-hand 9s|--seed 7|--log l|--phhs h.phhs",
    "dealer --with kuhn-policy": "--purify|--threshold 10%",
    "evaluate kuhn": "--method lbr|--checkpoint 1|--against kuhn-policy|--against-checkpoint 9|--average sd|"
    "--against-average sd|--abstraction no|--against-abstraction no|--strategy uniform|--from 0|"
    "--flops 9|--boards 9|--seed 7|--workers 2|--keep k|--budget 1s|--deals 600|--response-nodes 9",
    "evaluate leduc --method head-to-head": "--against leduc-policy|--boards 3|--seed 3|--resolve river",
    "evaluate leduc --method lbr": "--setting 1|--hands 100|--hands 100 --keep k|--budget 0.1s|--seed 3|--workers 2",
    "exploit kuhn out": "--player 0|--share 50%|--share 50% --to 20%|--checkpoint 1|--abstraction no",
    "exploit kuhn leduc-policy": "--replace",
    "export kuhn out": "--tabulate|--quantise uint8|--purify|--threshold 30%|--values|--average sd|"
    "--values-boards 9|--format zarr|--license CC0-1.0|--abstraction no",
    "export kuhn-policy out": "--vectors 9",
    "export leduc out --format csv": "--checkpoint 1|--by hand|--by hand --board Kc|--by hand --purify",
    "export leduc out --values": "--values-boards 9",
    "export kuhn leduc-policy": "--replace",
    "games kuhn": "",
    "match kuhn-policy kuhn --hands 300": "--hands 302|--seed 7|--workers 2|--budget 0.01s|--keep k|--log l.phhs|"
    "--purify|--threshold 30%|--against-purify|--against-threshold 30%",
    "plan leduc.toml --speed 3e7": "--set run.nodes=1e3|--speed 2e7|--budget 1s|--machines 2|--memory 1kB|--workers 2",
    "warmup kuhn.toml": "",
    "play kuhn-policy --seed 1": "--hands 9|--purify|--threshold 10%|--resolve river|--seed 7|--log l",
    "query kuhn cb": "--hand Q|--ev|--hand Q --ev|--range pio|--board As|--checkpoint 1|--sample 3|--abstraction no",
    "rank kuhn-policy kuhn --hands 200": "--hands 202|--seed 7|--workers 2|--keep k|--purify|--threshold 30%",
    "report spot out.csv --spots '' --flops 1 --to 9%": "--flops 2|--to 1%|--workers 2|--keep k|--run-outs 9|--seed 7",
    "report leduc out.csv --spots x": "--spots y|--checkpoint 9|--abstraction no",
    "resume kuhn --iterations 6": f"{SOLVE}|--workers 1|--abstraction no|--set-aside 1|--from-scratch|"
    "--set run.iterations=9",
    "resume taken --iterations 6": "--replace",
    "review hands --policy P": "--policy Q|--resolve river|--boards 9|--workers 2|--keep k|--top 9",
    "solve kuhn.toml --run r": f"{SOLVE}|--workers 1|--run s|--set run.iterations=9",
    "solve kuhn.toml --run kuhn": "--set-aside 1|--from-scratch",
    "solve taken.toml --run r": "--replace",
    f"spot QsJh2h7c3d {SPOT} --stack 90 --ip 22,KK --to 9% --run r --bets 1bb": ""
    "--oop AA|--ip KK|--pot 50|--stack 60|--to 2%|"
    "--policy kuhn|--line c|--board AsKsQs|--bets allin|--raises allin|--donk allin|--allin-spr 9|--add-line b13|"
    "--remove-line b500|--remove-line b1|--big-blind 2|--rake 5%|--rake 5% --rake-cap 1|--lock 'c=c 100%'|--time 0s|"
    "--workers 1|--run s|--set run.iterations=3|--force",
    "status kuhn": "--watch|--watch --every 9s|--every 9s|--abstraction no",
    "stop kuhn": "--after-checkpoint",
    "tensorboard kuhn out": "--watch|--watch --every 9s|--every 9s|--abstraction no",
    "verify kuhn": "--abstraction no",
    "view kuhn": "--port 0|--no-browser|--checkpoint 1|--abstraction no|--against kuhn-policy|--against-checkpoint 1|"
    "--against-abstraction no|--review no",
}
"""Command lines, and groups of options added to each; a group tests its last option."""
_VARIABLE = re.compile(
    r"[\d.,]+ (m?s|[kMG]B available)\b| at 0x\w+|speed .*|^.* · .*|^\d+ kernels compiled.*|"
    r"^(compiling|evaluating|reading|writing|flop)\b.*",
    re.M,
)


def echo(*given, **named):
    """Print the arguments of a call, in place of the function that a command calls last."""
    click.echo(f"given {given} {named}", err=True)


OPTIONS = [(name, option.opts[0]) for name, option in options() if option.opts[0] != "--help"]


def command_of(line):
    return next(name for name, _ in OPTIONS if f"{line} ".startswith(f"{name} "))


def tried(line):
    """Return the options of a command line; a command's first line adds --json and --code."""
    own, name = [given for given in CASES[line].split("|") if given], command_of(line)
    first = next(other for other in CASES if command_of(other) == name) == line
    return own + [given for given in ("--json", "--code no") if first and (name, given.split()[0]) in OPTIONS]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Runs of two small games with two checkpoints, their policies, a flop spot, and a run in strata."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder := tmp_path_factory.mktemp("options"))
        for name in ("kuhn", "leduc"):
            text = f'[game]\nname = "{name}"\n[solver]\nalgorithm = "cfr"\n[run]\nworkers = 0\niterations = 2\n'
            (folder / f"{name}.toml").write_text(text)
            assert command("solve", f"{name}.toml", "--run", name) == command("resume", name, "--iterations", 4) == 0
            assert command("export", name, f"{name}-policy") == 0
        kuhn = (folder / "kuhn.toml").read_text()
        (folder / "taken.toml").write_text(f'{kuhn}[export]\nout = "taken-policy"\n')
        assert command("solve", "taken.toml", "--run", "taken") == 0
        shutil.rmtree("taken-policy")
        (folder / "kuhn-policy").rename("taken-policy")
        assert command("export", "kuhn", "kuhn-policy") == 0
        compared = "[compare]\nlast = 4\npoints = 2\n[[compare.variant]]\nname = 'one'\n"
        (folder / "compare.toml").write_text(kuhn.replace("iterations = 2\n", compared))
        (folder / "leduc.toml").write_text(
            "[game]\nname = 'leduc'\nranks = 4\n[run]\nstrata = 2\nworkers = 1\niterations = 400\n"
        )
        assert command("solve", "leduc.toml", "--run", "strata", "--workers", 0) == 0
        assert command(*shlex.split(f"spot QsJh2h {SPOT} --to 9% --bets allin --run spot")) == 0
        yield folder


@pytest.fixture(scope="module", autouse=True)
def every_module():
    """Import all modules first, so that none imports a replaced function."""
    for module in pkgutil.walk_packages(mccfr.__path__, "mccfr."):
        with contextlib.suppress(ImportError):
            import_module(module.name)


@pytest.fixture
def outcome(world, tmp_path, monkeypatch, capsys):
    """Return a function that runs a command line in a copy of `world`.

    The function returns the lines of the status, the output, and the names and texts of changed files.
    """
    recorded = {"a": "A", "b": "B", "hands": 0, "pairs": None, "chips": 0, "mean_mbb": 9.0, "ci95_mbb": [8.0, 10.0]}
    recorded |= {"aivat_mean_mbb": None, "aivat_ci95_mbb": None}
    player = SimpleNamespace(name="A", game=HoldemGame())
    builder = SimpleNamespace(replaced=lambda: ["flop"], build=lambda replace: echo(replace) or [])
    bucket = {"street": "flop", "bucket": 1, "features": "ehs"}
    opened = SimpleNamespace(info=lambda: {"flop": {"buckets": 1, "recipe": {"features": "ehs"}}})
    opened.bucket_of_text = lambda *given: echo(*given) or bucket
    shared = samples.shared

    def giving(place, name, answer):
        monkeypatch.setattr(place, name, lambda *given, **named: echo(*given, **named) or answer)

    for name in ("acpc_bot", "slumbot", "gtowizard"):
        monkeypatch.setattr(bot_sessions, f"run_{name}", lambda _, *given, **named: echo(given, named) or recorded)
    giving(bot_sessions, "server_player", player)
    giving(json_lines, "answer_lines", [])
    giving(bot_sessions, "run_dealer", (None, recorded))
    giving(bot_sessions, "run_person", None)
    giving(bot_commands.click, "prompt", "secret")
    giving(review_files, "review_hands", {"hands": 0})
    monkeypatch.setattr(review_text, "review_text", str)
    giving(mccfr.view, "open_strategies", None)
    monkeypatch.setattr(mccfr.view, "serve", lambda shelf, port, ready: echo(port) or ready("URL"))
    monkeypatch.setattr(view_command, "_has_screen", lambda: True)
    giving(run_status, "stop_run", None)
    giving(cluster_status, "cluster_status", {"ranks": []})
    monkeypatch.setattr(cluster_commands, "_status_text", str)
    monkeypatch.setattr(launch, "run_to_end", lambda run, start, left, *given: echo(start(1), given))
    monkeypatch.setattr(launch, "local_launch", lambda *given: given)
    monkeypatch.setattr(launch, "hosts_launch", lambda *given: given)
    for place, name in ((launch, "check_reachable"), (capacity, "check_cluster")):
        giving(place, name, None)
    monkeypatch.setattr("webbrowser.open", echo)
    giving(build, "Builder", builder)
    giving(buckets, "Abstraction", opened)
    monkeypatch.setattr(samples, "shared", lambda play, left, count, *_: echo(count) or shared(play, left, 1))

    def run(line, *, room=True):
        (folder := tmp_path / "world").mkdir(exist_ok=True)
        for path in world.iterdir():  # files and folders that the line names, and runs of named policies
            if not (folder / path.name).exists() and (path.is_file() or path.name.removesuffix("-policy") in line):
                (shutil.copy2 if path.is_file() else shutil.copytree)(path, folder / path.name)
        monkeypatch.chdir(folder)
        if "--watch" in line:  # only at the first look another process works on the run
            looks = iter((True, False))
            for place in (run_directory, run_status):
                monkeypatch.setattr(place, "is_locked", lambda _: next(looks, False))
            monkeypatch.setattr(time, "sleep", echo)
        with monkeypatch.context() as patch:
            if not room:
                patch.setattr(free_space, "available_memory_bytes", lambda *_: 1000)
            before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
            ended = call(capsys, *shlex.split(line))
        changed = [path for path in sorted(folder.rglob("*")) if before.get(path) != path.stat().st_mtime_ns]
        names = [str(path.relative_to(folder)) for path in changed]
        tables = [path for path in changed if path.name in ("out", "out.csv") and path.is_file()]
        texts = [path.read_text() for path in tables]
        if changed:
            shutil.rmtree(folder)
        text = _VARIABLE.sub("", "\n".join([str(ended.status), ended.out, ended.err, *names, *texts]))
        return [each for each in text.splitlines() if each]

    return run


def test_every_option_of_every_command_is_tried():
    lines = [(line, given) for line in CASES for given in tried(line)]
    assert {(command_of(line), re.findall("--[a-z-]+", given)[-1]) for line, given in lines} == {*OPTIONS}
    assert {option.opts[0] for option in cli.params} == {"--version", "--traceback"}  # test_cli, test_user_mistakes


@pytest.mark.parametrize("line", CASES)
def test_an_option_has_an_effect(outcome, line):
    """Each option changes the output or the files; without options the command repeats both."""
    plain = outcome(line)
    assert outcome(line) == plain
    same = []
    for given in tried(line):
        room = not given.endswith("--force")
        if outcome(f"{line} {given}", room=room) == (plain if room else outcome(line, room=False)):
            same.append(given)
    assert same == []
