"""The command loop of PioSOLVER's protocol (UPI): reads one command per line and writes its answer.

After each answer comes the end string, a line that marks its end.  The client chooses it by set_end_string; at first
it is empty and not written.
"""

import threading
from pathlib import Path
from typing import TextIO

from mccfr.config.value_limits import shown
from mccfr.upi.upi_commands import COMMANDS, WHILE_SOLVING, UpiSession
from storage.durable import error_text

_LONGEST_NAME = 64


class Conversation:
    """Runs one client's commands, and writes the answers to the text stream `out`.

    Each answer is followed by the end string, a line to mark its end, if the client has chosen one.
    """

    def __init__(self, out: TextIO) -> None:
        self._out, self._end, self._writing = out, "", threading.Lock()
        self._session = UpiSession(self._write)

    def answer(self, line: str) -> bool:
        """Run one command line and write its answer, or one sentence on its error.

        Returns False for `exit`, which gets no answer, otherwise True.  Empty lines and lines that begin with # get no
        answer either.
        """
        name, _, text = line.strip().partition(" ")
        if not name or name.startswith("#"):
            return True
        if name == "exit":
            return False
        if name == "set_end_string":
            self._end = text.strip()
        try:
            answer = self._done(name, text)
        except (ValueError, RuntimeError, MemoryError, OSError) as error:
            answer = f"ERROR: {' '.join(error_text(error).split()) or 'memory is full'}"
        self._write(f"{name} ok!" if answer is None else answer, self._end)
        self._session.begin()
        return True

    def _done(self, name: str, text: str) -> str | None:
        """Run the command `name` with the text behind it; return its answer, or None for "NAME ok!".

        Raises `ValueError` for an unknown or invalid command, and during a solve for one that must wait for its end.
        """
        if name == "set_end_string":
            return None
        if name in ("load_script", "load_script_silent"):
            return self._script(text)
        if name not in COMMANDS:
            raise ValueError(f"{shown(name[:_LONGEST_NAME])} is not a command; the commands are: {', '.join(COMMANDS)}")
        if self._session.solving and name not in WHILE_SOLVING:
            raise ValueError(f"{name}: the solver is running; send stop or wait_for_solver first")
        return COMMANDS[name](self._session, text)

    def _script(self, text: str) -> str | None:
        """Run the commands of the file that `text` names, without answers to them, and return None.

        Raises `ValueError`, with the line number, for the first invalid command; later ones are not run. Raises
        `OSError` if the file cannot be read.
        """
        path = Path(text.strip().strip('"'))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            name, _, rest = line.strip().partition(" ")
            if name and not name.startswith("#"):
                try:
                    self._done(name, rest)
                except ValueError as error:
                    raise ValueError(f"{path}, line {number}: {error}") from None
                self._session.begin()
        return None

    def _write(self, text: str, end: str = "") -> None:
        """Write a text as lines, then the end string `end` if it is not ""; several threads may call it."""
        with self._writing:
            self._out.write(f"{text}\n{end}\n" if end else f"{text}\n")
            self._out.flush()

    def close(self) -> None:
        """Stop a running solve, after the client has ended."""
        self._session.stop("")


def serve(lines: TextIO, out: TextIO) -> None:
    """Run the commands of PioSOLVER's protocol until `exit` or the end of the input.

    lines  text stream with one command a line, such as standard input
    out    text stream for the answers
    """
    conversation = Conversation(out)
    try:
        for line in lines:
            if not conversation.answer(line):
                break
    finally:
        conversation.close()
