"""An evaluation: how often the first player of Kuhn poker bets the jack for each bet of the king."""

from mccfr.evaluation.methods import Method


class Bluffs(Method):
    """Every equilibrium has 1/3 (Kuhn 1950): the jack bets with probability a, the king with 3a."""

    def problem(self, game):
        """Return why a game cannot be measured and what to use instead, or None."""
        return None if list(game.buckets) == [3, 3] else f"{game.name} has not three cards beside its tree: use exact"

    def find(self, side, against, options):
        """Return the ratio. `probability[block]` is [buckets, slots]; the first two slots are check and bet."""
        jack, _, king = side.strategy.probability[0][:, 1]
        return {"value_chips": float(jack / king), "jack": float(jack), "king": float(king)}
