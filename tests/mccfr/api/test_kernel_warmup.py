"""`mccfr warmup`: fills the kernel cache, so that later commands compile nothing.

Shows:

* After `warmup` the same target's command compiles nothing; two commands compile no more signatures than before
  (test_a_prepared_command_compiles_nothing)
"""

import json
import os
import shutil
import subprocess
import sys

import pytest
from places import RUNS
from policies import write_random

from mccfr.api.kernel_warmup import warm_up
from mccfr.config.game_tables import KuhnGame

SPOT = "spot Kc7d2s5h --oop TT+,AQs+,KQ --ip 99-22,ATs+,KJs+ --pot 60 --stack 170 --set run.iterations=1 --workers 0"
MOST = {"leduc": 15, "Kc7d2s5h": 58}
"""Signatures that the commands of each target compile.  They may only fall: each delays the first use."""


@pytest.mark.parametrize(
    ("target", "command", "status"),
    [("leduc", "solve leduc --iterations 10", 0), pytest.param("Kc7d2s5h", SPOT, 3, marks=pytest.mark.slow)],
)
def test_a_prepared_command_compiles_nothing(tmp_path, target, command, status):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run(*arguments, expected=0):
        program = [sys.executable, "-m", "mccfr", *arguments]
        done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == expected, done.stderr
        return done.stdout

    found = json.loads(run("warmup", target, "--json"))
    assert found["compiled"] == found["kernels"] <= MOST[target] and found["bytes"] > 10_000
    run(*command.split(), expected=status)
    files = list((tmp_path / "cache").rglob("*.kernel"))
    assert (len(files), sum(file.stat().st_size for file in files)) == (found["kernels"], found["bytes"])
    assert json.loads(run("warmup", target, "--json")) == {**found, "compiled": 0}


def test_a_blueprint_whose_buckets_are_not_built_is_prepared_for_training(tmp_path):
    (tmp_path / "abstractions").mkdir()
    for name in ("hunl-quick.toml", "abstractions/quick.toml"):
        shutil.copy(RUNS / name, tmp_path / name)
    messages = []
    assert warm_up(str(tmp_path / "hunl-quick.toml"), messages.append)["kernels"] > 0
    assert len(messages) == 1 and "only training is prepared" in messages[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["abstractions", "hunl-quick.toml"]


def test_targets_that_cannot_be_prepared_are_refused(tmp_path):
    with pytest.raises(ValueError, match="leduc"):
        warm_up("ledux")
    policy = write_random(tmp_path / "kuhn", KuhnGame())
    with pytest.raises(ValueError, match=r"cannot be prepared for `bot`: .* give the run's recipe instead"):
        warm_up(str(policy))
