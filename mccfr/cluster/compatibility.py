"""Checks that the machines of a run have the same software, run and processor features.

It compares the versions of mccfr, Python, numpy and numba, and the processor features that compiled code uses. It also
compares hashes of the run's settings and of its card abstraction. A difference in any of them could make results depend
on the machine that computes them.
"""

import platform
import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mccfr.common.package import VERSION
from mccfr.runs.directory.run import Run
from storage import durable
from storage.damage import UnreadableError, reading
from storage.manifest import content_hash
from storage.open_directory import OpenDirectory

TOKEN = "cluster.token"
"""File of the run directory that the coordinator rewrites for each session; every machine must see it."""
_FEATURES = ("avx", "avx2", "avx512f", "avx512dq", "avx512vl", "fma")
_SEEN_SECONDS = 10.0  # network file systems show a new file with a delay

_COMPARED = {
    "mccfr": "mccfr {}",
    "python": "Python {}",
    "numpy": "numpy {}",
    "numba": "numba {}",
    "identity": "a run of the identity {}",
    "abstraction": "the abstraction {}",
    "processor": "a processor with {}",
}


def processor_features() -> str:
    """Return the processor's architecture and its features for vector instructions, as a text.

    Only features that compiled code may use are named, as in "x86_64 avx avx2 fma". If the system does not tell the
    features, the text has the architecture only.
    """
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    flags = next((set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), set())
    return " ".join([platform.machine(), *(name for name in _FEATURES if name in flags)])


def facts_of(run: Run) -> dict[str, Any]:
    """Return {name: value} of the facts in which all machines of a run must agree, and the host.

    They are software versions, processor features, and hashes of the run's settings and of its card abstraction.
    """
    hashes = run.manifest["identity_document"].get("abstraction")
    return {
        "host": socket.gethostname(),
        "mccfr": VERSION,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba"),
        "identity": run.manifest["identity"][:12],
        "abstraction": None if hashes is None else content_hash(hashes)[:12],
        "processor": processor_features(),
    }


def disagreement(facts: Sequence[Mapping[str, Any]]) -> str | None:
    """Return a sentence on the first fact in which a process differs from the first one, or None.

    facts  a dictionary {name: value} from each process, as `facts_of` returns it; the first is compared with the others
    """
    for other in facts[1:]:
        for key, text in _COMPARED.items():
            if other[key] != facts[0][key]:
                first, second = text.format(facts[0][key]), text.format(other[key])
                return (
                    f"{facts[0]['host']} has {first} and {other['host']} has {second}: machines of one run must agree, "
                    "or its result would depend on them; install the same version on all"
                )
    return None


def new_token(run: Run) -> str:
    """Write a new random text, the token, into a file of the run directory, and return it.

    A machine that reads the token under the same path sees the same directory, not one of the same name.
    """
    token = secrets.token_hex(16)
    run.path(TOKEN).unlink(missing_ok=True)
    durable.write_file(run.path(TOKEN), token.encode())
    return token


def shared_directory(directory: Path, token: str, seconds: float = _SEEN_SECONDS) -> OpenDirectory:
    """Open the run directory after checking that it is the one that the leading machine uses.

    The caller closes the result.

    token    random text that the leading process has written into its directory
    seconds  longest wait until the token is visible here

    Raises `ValueError` if at the end of that time this machine has no such directory, or one without the token. Raises
    `UnreadableError` if the system then cannot read the token.
    """
    end = time.monotonic() + seconds
    while True:
        timed_out = time.monotonic() >= end
        with ExitStack() as stack:
            try:
                with reading(directory / TOKEN), suppress(FileNotFoundError):
                    opened = stack.enter_context(OpenDirectory(directory))
                    if (opened.path / TOKEN).read_text() == token:
                        stack.pop_all()
                        return opened
            except UnreadableError:
                if timed_out:
                    raise
        if timed_out:
            raise ValueError(
                f"{directory} is not the coordinator's directory ({TOKEN} is missing): put the run on a file system "
                "that all machines share, under the same path"
            )
        time.sleep(0.1)
