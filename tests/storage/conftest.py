import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def worker():
    """`ask(request)`: send a request to another process that maps tables, and wait until it is done."""
    program = Path(__file__).with_name("mapping_worker.py")
    with subprocess.Popen(
        [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def ask(request):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n"

        yield ask
        process.stdin.close()
