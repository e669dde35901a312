"""Runs the commands and code that a documentation page shows.

A block of code whose first line is `# name.py` or `# name.toml` is that file. Other Python is executed, block after
block in one namespace. The text after `print(...)  #` must be in the output, in order. In a console block each
`$ mccfr ...` must succeed, and the lines below it must be in its output ("..." stands for any lines).
"""

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

Run = Callable[..., int]


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Yield language and text of each block of code."""
    yield from re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the arguments of each `mccfr` command of a console block, and the lines below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, *below = part.splitlines()
        program, *arguments = shlex.split(line, comments=True)
        if program.rpartition("/")[2] == "mccfr":
            yield arguments, [shown for shown in below if shown.strip() and shown.strip() != "..."]


def _contains(printed: str, wanted: list[str], where: str) -> None:
    rest = printed
    for text in wanted:
        assert text in rest, f"{where}: {text!r} is not in what was printed:\n{printed}"
        rest = rest[rest.index(text) + len(text) :]


def play(page: Path, folder: Path, run: Run, printed: Callable[[], str]) -> int:
    """Run all blocks of a page in `folder`, the current directory; return their number.

    run      runs a command and returns its exit status
    printed  returns the text printed on both streams since the last call
    """
    names: dict[str, object] = {"__name__": "page"}
    count = 0
    for language, text in blocks(page):
        count += 1
        file = re.match(r"# (\w+\.(?:py|toml))\n", text)
        if file:
            (folder / file[1]).write_text(text)
        elif language == "python":
            exec(compile(text, f"{page.name}, block {count}", "exec"), names)
            wanted = re.findall(r"^ *print\(.*\)  # (.*)$", text, re.MULTILINE)
            _contains(printed(), wanted, f"{page.name}, block {count}")
        elif language == "console":
            for arguments, below in commands(text):
                assert run(*arguments) == 0, (page.name, arguments, printed())
                _contains(printed(), below, f"{page.name}, {arguments}")
    return count
