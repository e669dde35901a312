"""Short writes and interrupted system calls: a run, its checkpoints and its export keep their bits."""

import json
import os
import subprocess
import sys

import pytest
from failing_reads import compiled
from sessions import assert_same

from mccfr.runs.directory.run import open_run
from mccfr.runs.directory.verification import problems_of


def test_the_library_cuts_a_write_short(tmp_path, library):
    """Check that the preloaded library shortens writes, so that the other test is not vacuous."""
    once = "import os; print(os.write(os.open('file', os.O_CREAT | os.O_WRONLY), b'12345678'))"
    done = subprocess.run(
        [sys.executable, "-c", once], cwd=tmp_path, env=os.environ | {"LD_PRELOAD": str(library)}, check=True, stdout=-1
    )
    assert done.stdout == b"4\n" and (tmp_path / "file").read_bytes() == b"1234"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Compile the preloaded library that shortens and interrupts calls."""
    return compiled("short_writes", tmp_path_factory.mktemp("preloaded"))


@pytest.mark.parametrize("tables", ["zarr", "hdf5"])
def test_short_and_interrupted_calls_change_nothing(tmp_path, library, tables):
    (tmp_path / "leduc.toml").write_text(f'game.name = "leduc"\ntables.format = "{tables}"\nrun.workers = 0\n[export]')
    counts = tmp_path / "told.json"
    for name, disturbance in (("quiet", {}), ("run", {"LD_PRELOAD": str(library), "TOLD": str(counts)})):
        arguments = [sys.executable, "-m", "mccfr", "solve", "leduc.toml", "--run", name, "--iterations", "2000"]
        environment = os.environ | disturbance
        subprocess.run(arguments, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=300)
    halved, interrupted = json.loads(counts.read_text())
    assert halved > 30 and interrupted > 30
    assert problems_of(tmp_path / "run") == [] and problems_of(tmp_path / "run-policy") == []
    assert_same(open_run(tmp_path / "run"), open_run(tmp_path / "quiet"))
    for path in sorted((tmp_path / "quiet-policy").glob("*.npy")):
        assert path.read_bytes() == (tmp_path / "run-policy" / path.name).read_bytes()
