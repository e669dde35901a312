"""Runs the readers of docs/examples in C and JavaScript."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

EXAMPLES = ROOT / "docs/examples"
_READ_EACH = """
const [reader, questions] = process.argv.slice(1);
for (const [number, question] of JSON.parse(questions).entries()) {
  process.argv = ["node", reader, ...question];
  await import(`${reader}?${number}`);
  console.log();
}
"""
"""JavaScript that runs a module once for each question, with an empty line behind its output."""


def reader_program(language: str, folder: Path) -> list[str]:
    """Return the command of a reader; skip the test if this machine cannot run it."""
    if language == "c":
        strict = "-std=c99", "-Wall", "-Wextra", "-Werror"
        build = "cc", *strict, "-O1", "-o", folder / "look_up", EXAMPLES / "look_up.c", "-lz", "-lm"
        subprocess.run(build, check=True, timeout=60)
        return [str(folder / "look_up")]
    if shutil.which("node") is None:
        pytest.skip("there is no node, which runs JavaScript, on this machine")
    return ["node", str(EXAMPLES / "look_up.mjs")]


def read(program: Sequence[str], questions: Sequence[Sequence[object]]) -> list[dict[str, float]]:
    """Return the printed numbers by word for each question.

    A question is policy, line, hand, board and number of the played hand. One process of Node answers all questions,
    because its start takes longer than an answer.
    """
    texts = [[str(word) for word in question] for question in questions]
    commands = [[*program, *question] for question in texts]
    if program[0] == "node":
        commands = [["node", "--input-type=module", "--eval", _READ_EACH, program[1], json.dumps(texts)]]
    found = (subprocess.run(each, capture_output=True, text=True, check=True, timeout=60).stdout for each in commands)
    printed = "\n".join(found).rstrip("\n").split("\n\n") if program[0] == "node" else list(found)
    return [{word: float(number) for word, number in map(str.split, text.splitlines())} for text in printed]


def pass_vectors(program: Sequence[str], policy: Path, vectors: Sequence[Mapping[str, Any]]) -> None:
    """Assert that a reader finds the actions and probabilities of test vectors of a policy."""
    questions = [[policy, each["line"], each["hand"], *[each["board"]] * bool(each["board"])] for each in vectors]
    for vector, found in zip(vectors, read(program, questions), strict=True):
        assert list(found) == vector["actions"], vector
        assert list(found.values()) == pytest.approx(vector["probabilities"], abs=1e-9), vector
