"""Defects planted in durable code and estimators, and the tests that must fail with each.

They are in `data/planted_defects.txt`, as blocks separated by empty lines: `MODULE: DEFECT`, the tests, the old text
with `-` before each line, and the new text with `+` before each. `#` begins a comment.
Examples are a missing sync, a swapped order and a skipped check. `test_planted_defects.py` plants all of them.
"""

from mutants import Defect
from places import DATA


def _text(lines: list[str], sign: str) -> str:
    return "\n".join(line[1:] for line in lines if line[0] == sign)


def _defect(block: str) -> Defect:
    first, test, *lines = block.strip("\n").split("\n")
    module, what = first.split(": ", 1)
    return Defect(module, _text(lines, "-"), _text(lines, "+"), what, test)


_BLOCKS = (DATA / "planted_defects.txt").read_text(encoding="utf-8").split("\n\n")
DEFECTS = [_defect(block) for block in _BLOCKS if not block.lstrip("\n").startswith("#")]
