"""A UPI client in this process."""

import io

from mccfr.upi.protocol import Conversation


class Client:
    """Sends commands and collects the answers."""

    def __init__(self):
        self._out = io.StringIO()
        self.conversation = Conversation(self._out)

    def ask(self, *lines):
        """Send commands and return the answer to the last one."""
        for line in lines:
            before = len(self._out.getvalue())
            self.conversation.answer(line)
        return self._out.getvalue()[before:].removesuffix("\n")

    def all_answers(self):
        """Return all answers so far."""
        return self._out.getvalue()

    def numbers(self, line):
        """Return the answer's numbers, row by row."""
        return [[float(each) for each in row.split()] for row in self.ask(line).split("\n")]


def spot(board, *lines, oop="TT+,AQs+", ip="77+,ATs+,KQs,87s", pot=180, stack=910):
    """Return a client that has built a tree."""
    client = Client()
    answer = client.ask(
        f"set_range OOP {oop}",
        f"set_range IP {ip}",
        f"set_board {board}",
        f"set_pot 0 0 {pot}",
        f"set_eff_stack {stack}",
        "set_threads 1",
        *(f"add_line {line}" for line in lines),
        "build_tree",
    )
    assert answer == "build_tree ok!"
    return client
