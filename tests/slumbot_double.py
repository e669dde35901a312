"""A test server with Slumbot's interface.

Some answers contain a new token. A new hand may contain the server's first action, or be over. The line of an all-in
ends with or without the remaining streets.
"""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random

from acpc import rules

from abstraction.cards import card_text
from mccfr.games.betting import BettingState
from mccfr.games.translation import apply_action
from mccfr.matches.acpc import follow_actions, won_chips


class Double:
    """Deals to one client and plays a program against it; answers illegal actions with an error."""

    def __init__(self, program, seed=0, hands=10**9):
        self.program, self.rng, self.hands, self.refused = program, Random(seed), hands, []
        self.token, self.tokens, self.number = None, 0, -1

    def post(self, where, body):
        """Return the answer to a request without HTTP, also if it is an error message."""
        status, answer = self.handle(where, body)
        assert status == 200 or "error_msg" in answer
        return answer

    def handle(self, where, body, headers=None):
        """Return (status, answer)."""
        if body.get("token") != self.token:
            return self._refuse("the token is not the newest")
        if where == "login":
            return 200, {"token": self._new_token()}
        if where == "new_hand":
            self._deal()
        elif where == "act":
            problem = self._act(body.get("incr"))
            if problem:
                return self._refuse(problem)
        else:
            return 404, {"error_msg": "no such request"}
        self._play()
        return 200, self._answer()

    def _refuse(self, why):
        self.refused.append(why)
        return 400, {"error_msg": why}

    def _new_token(self):
        self.tokens += 1
        self.token = f"token-{self.tokens}"
        return self.token

    def _deal(self):
        self.number += 1
        self.pos = self.rng.randrange(2)
        deck = [card_text(card) for card in self.rng.sample(range(52), 9)]
        self.holes, self.board, self.actions = ["".join(deck[:2]), "".join(deck[2:4])], deck[4:], []
        self.game = follow_actions(rules(), [])
        self.program.deal(1 - self.pos, self.holes[1 - self.pos], self.number)

    def _do(self, action):
        self.actions.append(action)
        self.game = follow_actions(rules(), self.actions)

    def _act(self, incr):
        state = self.game.state
        if not isinstance(state, BettingState) or state.player != self.pos:
            return "it is not your turn"
        if not isinstance(incr, str) or not incr:
            return "no incr"
        if incr in "kc" and (incr == "c") != state.facing:
            return f"{incr} is not legal here"
        action = incr.replace("k", "c")
        if incr[0] == "b":
            action = f"r{int(incr[1:]) + int(state.put_in_before)}"
        try:
            apply_action(rules(), state, action)
        except ValueError as error:
            return str(error)
        self._do(action)
        self.program.see(action)
        return None

    def _play(self):
        while isinstance(self.game.state, BettingState) and self.game.state.player != self.pos:
            self.program.board("".join(self.board[: (0, 3, 4, 5)[self.game.state.street]]))
            self._do(self.program.choose())

    def _written(self):
        """Return the betting in the server's notation."""
        found, state = "", rules().start()
        for action in self.actions:
            street, before = state.street, state.put_in_before
            if action[0] == "r":
                found += f"b{int(float(action[1:]) - before)}"
            else:
                found += action if action == "f" or state.facing else "k"
            state = apply_action(rules(), state, action)
            found += "/" * (isinstance(state, BettingState) and state.street != street)
        left = len(self.game.text) - len(self.game.text.rstrip("/"))
        return found + "/" * (left if isinstance(self.game.state, int) and self.rng.random() < 0.5 else 0)

    def _answer(self):
        over = isinstance(self.game.state, int)
        dealt = self.game.text.count("/")
        found = {
            "old_action": "",
            "action": self._written(),
            "client_pos": self.pos,
            "hole_cards": [self.holes[self.pos][:2], self.holes[self.pos][2:]],
            "board": self.board[: (0, 3, 4, 5)[dealt]],
        }
        if self.rng.random() < (0.3 if self.token else 0.8):
            found["token"] = self._new_token()
        if over:
            won = won_chips(rules(), self.game, self.holes, ["".join(self.board)])
            other = self.holes[1 - self.pos]
            found |= {"winnings": int(won[self.pos]), "won_pot": 0, "session_total": 0}
            found |= {"bot_hole_cards": [other[:2], other[2:]]}
        return found


@contextmanager
def http_server(double):
    """Serve the double over HTTP and yield its address; for status None, close the connection."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "null")
            status, answer = double.handle(self.path.removeprefix("/api/"), body, self.headers)
            if status is None:
                return
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST  # noqa: N815  (so named by the library)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/api"
        finally:
            server.shutdown()
            thread.join()
