"""Runs the readers of docs/examples in C and JavaScript."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

EXAMPLES = ROOT / "docs/examples"


def reader_program(language: str, folder: Path) -> list[str]:
    """Return the command of a reader, as far as this machine can run it."""
    if language == "c":
        strict = "-std=c99", "-Wall", "-Wextra", "-Werror"
        build = "cc", *strict, "-O1", "-o", folder / "look_up", EXAMPLES / "look_up.c", "-lz", "-lm"
        subprocess.run(build, check=True, timeout=60)
        return [str(folder / "look_up")]
    if shutil.which("node") is None:
        pytest.skip("there is no node, which runs JavaScript, on this machine")
    return ["node", str(EXAMPLES / "look_up.mjs")]


def pass_vectors(program: Sequence[str], policy: Path, vectors: Sequence[Mapping[str, Any]]) -> None:
    """Assert that a reader finds the actions and probabilities of test vectors of a policy."""
    for vector in vectors:
        arguments = [*program, policy, vector["line"], vector["hand"], *[vector["board"]] * bool(vector["board"])]
        found = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
        assert [text.split()[0] for text in found] == vector["actions"], vector
        shares = [float(text.split()[1]) for text in found]
        assert shares == pytest.approx(vector["probabilities"], abs=1e-9), vector
