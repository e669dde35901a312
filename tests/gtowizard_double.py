"""A test server with the interface of the GTO Wizard researcher server.

It fails like that server: it is busy before or after it reads a request, closes connections, or refuses too many open
hands.  Chips are PokerKit's, and AIVAT is a tenth of them.
"""

import re
import threading
import warnings
from random import Random

from pokerkit import HandHistory
from slumbot_double import Double

from mccfr.config.game_tables import HoldemGame
from mccfr.games.betting import BettingState
from mccfr.matches.phh_format import Hand, phh

GAME = {"game_id": 1, "game_name": "HUNL 200BB", "game_format": "heads-up", "starting_stack": 20000.0}
GAME |= {"blinds": [100.0, 50.0], "stack_reset_per_hand": True}


class Wizard:
    """Plays hands against the client with the right key, one program for each hand."""

    def __init__(self, program, seed=0, faults=0.0, most=20, key="k3y"):
        """`faults`: probability of each kind of failure; `most`: limit of open hands."""
        self.program, self.rng, self.faults, self.most, self.key = program, Random(seed), faults, most, key
        self.hands, self.refused, self.failed, self.won, self.busiest = {}, [], 0, {}, 0
        self.lock = threading.Lock()

    def handle(self, where, body, headers):
        """Return (status, answer); status None closes the connection."""
        with self.lock:
            if headers["X-API-KEY"] != self.key:
                return 401, {"detail": "Invalid API key"}
            fault = self.rng.random() / self.faults if self.faults and body is not None else 4
            self.failed += fault < 4
            if fault < 2:
                return (503, {"detail": "busy"}) if fault < 1 else (None, None)
            status, answer = self._answer(where, body)
            if fault < 4:
                return (504, {"detail": "too late"}) if fault < 3 else (None, None)
            return status, answer

    def open(self):
        return [number for number in self.hands if number not in self.won]

    def _answer(self, where, body):
        if where == "hands/in-progress?game_name=HUNL%20200BB":
            return 200, [self._hand_json(number) for number in self.open()]
        if where == "hands" and body == {"game_name": "HUNL 200BB"}:
            if len(self.open()) >= self.most:
                return 409, {"detail": f"Cannot start a new hand. The most is {self.most}."}
            number = 1000 + len(self.hands)
            self.hands[number] = hand = Double(self.program(number), self.rng.random())
            hand._deal()
        else:
            number = int(re.fullmatch("hands/([0-9]+)/act", where)[1])
            hand, action = self.hands[number], body["action"]
            amount = body["amount"]
            problem = "the hand is over" if number in self.won else None
            if (action == "b") != isinstance(amount, int):
                problem = "an amount goes with b, and with nothing else"
            problem = problem or hand._act(action + (str(amount) if action == "b" else ""))
            if problem:
                self.refused.append(problem)
                return 409 if number in self.won else 422, {"detail": problem}
        hand._play()
        found = self._hand_json(number)
        self.busiest = max(self.busiest, len(self.open()))
        return 200, found

    def _hand_json(self, number):
        hand = self.hands[number]
        over, facing = isinstance(hand.game.state, int), not isinstance(hand.game.state, int) and hand.game.state.facing
        moves = [move.replace("/", "_") for move in re.findall("b[0-9]+|[kcf/]", hand._written())]
        if over and number not in self.won:
            self.won[number] = paid(hand) * (1 - 2 * hand.pos)
        shown = over and (hand.game.actions[-1] != "f" or number % 2)
        seats = (("me", hand.pos, True), ("GTO Wizard", 1 - hand.pos, shown))
        players = [
            {
                "name": name,
                "stack": 0.0,
                "position": ("BB", "SB")[pos],
                "hole_cards": hand.holes[pos] if known else None,
            }
            for name, pos, known in seats
        ]
        state = {
            **{"street": "flop", "common_pot": 0.0, "total_pot": 0.0, "raise_range": None},
            "board_cards": "".join(hand.board[: (0, 3, 4, 5)[hand.game.text.count("/")]]),
            "is_hand_over": over,
            "players": players if number % 3 else players[::-1],
            "legal_actions": [] if over else ["f", "c", "b"] if facing else ["k", "b"],
            "action_history": moves,
            "has_gto_wizard_folded": False,
            "winnings": self.won.get(number),
            "aivat_score": self.won[number] / 10 if over else None,
        }
        return {"hand_id": number, "game": GAME, "game_state": state}


def paid(hand):
    """Return the big blind's profit as PokerKit computes it."""
    assert not isinstance(hand.game.state, BettingState)
    table = phh(Hand(hand.game.text.rstrip("/"), tuple(hand.holes), "".join(hand.board)), HoldemGame())
    with warnings.catch_warnings(action="ignore"):
        *_, last = HandHistory(**table)
    return float(last.stacks[0]) - 20_000
