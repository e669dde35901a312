"""Naive local best response: every deal, every translation, ranges by replaying the line.

A particle is a deal, the policy's position in its tree, and a weight.  Each line is computed anew; only the chosen
actions are cached.
"""

from naive import dealt_hands

from mccfr.games.betting import fold_value
from mccfr.games.identity_translation import IdentityTranslation
from mccfr.games.line_lookup import NOWHERE, LineReading
from mccfr.games.translation import real_betting
from mccfr.trees.compiled import DECISION


class Twin:
    """The responder in one seat against a dense strategy.

    actions  function that returns the responder's actions in a state: fold, call, ascending raises
    """

    def __init__(self, game, strategy, seat, actions):
        self.game, self.strategy, self.seat, self.actions = game, strategy, seat, actions
        self.betting = real_betting(game)
        weight, self.hands, self.boards, self.bucket, self.result = dealt_hands(game)
        pairs = [tuple(pair) for pair in self.hands.tolist()]
        self.weight = [w / pairs.count(pair) for w, pair in zip(weight.tolist(), pairs, strict=True)]
        self.weight = [w / sum(self.weight) for w in self.weight]
        self.chosen = {}

    def value(self):
        """Return the responder's expected chips."""
        state, readings = self.betting.start()
        return sum(w * self._play(state, [], readings[0], deal) for deal, w in enumerate(self.weight))

    # --- the policy ---

    def _policy(self, state, reading, deal):
        """Return (probability, real action, translation after it) of each action of the policy."""
        arrays, node = self.game.tree.arrays, reading.node
        if node == NOWHERE or arrays.kind[node] != DECISION:
            return [(1.0, "c", self.betting.outcomes(reading, state, "c")[0])]
        block, slot = int(arrays.block[node]), int(arrays.slot[node])
        row = self.strategy.probability[block][self.bucket[deal, block]]
        found = []
        for number, action in enumerate(self.betting.real_actions(reading, state)):
            after = LineReading(self.betting.child(node, number), 1.0)
            if action == "c" and reading.closed != NOWHERE:
                after = LineReading(reading.closed, 1.0)
            found.append((float(row[slot + number]), action, after))
        return found

    # --- the hand ---

    def _play(self, state, line, reading, deal):
        if state.player == self.seat:
            action = self._choice(state, line, deal)
            return sum(
                drawn.probability * self._after(state, line, action, drawn, deal)
                for drawn in self.betting.outcomes(reading, state, action)
            )
        return sum(
            probability * self._after(state, line, action, after, deal)
            for probability, action, after in self._policy(state, reading, deal)
            if probability > 0
        )

    def _after(self, state, line, action, reading, deal):
        after = self.betting.apply(state, action)
        if isinstance(after, int):
            return self._paid(self.betting.settled(state, action), deal)
        return self._play(after, [*line, action], reading, deal)

    def _paid(self, paid, deal):
        return (paid[0] + paid[1] * self.result[deal]) * (1 if self.seat == 0 else -1)

    # --- the responder ---

    def _choice(self, state, line, deal):
        own, seen = self.hands[deal, self.seat], tuple(self.boards[deal, : state.street + 1])
        key = (tuple(line), own, seen)
        if key not in self.chosen:
            alike = [
                other
                for other in range(len(self.weight))
                if self.hands[other, self.seat] == own and tuple(self.boards[other, : state.street + 1]) == seen
            ]
            self.chosen[key] = self._best(state, [p for other in alike for p in self._particles(line, other)])
        return self.chosen[key]

    def _particles(self, line, deal):
        """Return (deal, translation, weight) of each state of the policy after a line."""
        state, readings = self.betting.start()
        found = [(deal, readings[0], self.weight[deal])]
        for action in line:
            moved = []
            for _, reading, weight in found:
                if state.player == self.seat:
                    moved += [
                        (deal, drawn, weight * drawn.probability)
                        for drawn in self.betting.outcomes(reading, state, action)
                    ]
                else:
                    moved += [
                        (deal, after, weight * probability)
                        for probability, done, after in self._policy(state, reading, deal)
                        if done == action and probability > 0
                    ]
            found, state = moved, self.betting.apply(state, action)
        return found

    def _best(self, state, particles):
        best, chosen = None, None
        total = sum(weight for _, _, weight in particles)
        for action in self.actions(state):
            value = sum(weight * self._worth(state, action, deal, reading) for deal, reading, weight in particles)
            if best is None or value > best + 1e-9 * total:
                best, chosen = value, action
        return chosen

    def _worth(self, state, action, deal, reading):
        """Return the chips if both players only check and call after an action and the reply to it."""
        if action == "f":
            return self._folded(state, deal)
        if action == "c":
            return self._checked_down(state, deal)
        after, value = self.betting.apply(state, action), 0.0
        for drawn in self.betting.outcomes(reading, state, action):
            folds = sum(p for p, done, _ in self._policy(after, drawn, deal) if done == "f")
            value += drawn.probability * (
                folds * self._folded(after, deal) + (1 - folds) * self._checked_down(after, deal)
            )
        return value

    def _folded(self, state, deal):
        if isinstance(self.betting, IdentityTranslation):
            return self._paid(self.betting.settled(state, "f"), deal)
        return self._paid((fold_value(state), 0.0), deal)

    def _checked_down(self, state, deal):
        after = self.betting.apply(state, "c")
        if isinstance(after, int):
            return self._paid(self.betting.settled(state, "c"), deal)
        return self._checked_down(after, deal)


def pot_or_all_in(rules):
    """Return a function that lists fold, call, pot and all-in of a no-limit game with whole chips."""

    def actions(state):
        found = (["f"] if state.facing else []) + ["c"]
        if state.to_call < rules.stack:
            least = min(state.to_call + state.last_raise, rules.stack)
            targets = {max(min(3 * state.to_call, rules.stack), least), rules.stack}
            found += [f"r{target:g}" for target in sorted(targets)]
        return found

    return actions


def value(game, strategy, actions):
    """Return the responder's chips as player 0 and as player 1."""
    return tuple(Twin(game, strategy, seat, actions).value() for seat in range(2))
