"""Fixture: another process that maps and writes tables on request."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def worker():
    """Return `send(request)`: another process, `mapping_worker.py`, carries out the request."""
    program = Path(__file__).with_name("mapping_worker.py")
    with subprocess.Popen(
        [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def send(request):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n"

        yield send
        process.stdin.close()
