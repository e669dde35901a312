"""An evaluation: how often the first player of Kuhn poker bets his worst card for each time that he bets his best."""

from mccfr.evaluation.methods import Method


class Bluffs(Method):
    """In every equilibrium of Kuhn poker a third (Kuhn 1950): he bets the jack with a, the king with 3a."""

    def problem(self, game):
        """Why a game cannot be measured, and what to use instead; None where it can."""
        return None if list(game.buckets) == [3, 3] else f"{game.name} has not three cards beside its tree: use exact"

    def find(self, side, against, options):
        """`probability[block]` is [buckets, slots]; the first decision's actions are the first slots: check, bet."""
        jack, _, king = side.strategy.probability[0][:, 1]
        return {"value_chips": float(jack / king), "jack": float(jack), "king": float(king)}
