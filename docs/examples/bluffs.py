"""An evaluation: the ratio of two bet frequencies of the first player in Kuhn poker, jack over king."""

from mccfr.evaluation.methods import Method


class Bluffs(Method):
    """The ratio is 1/3 in every equilibrium with bets (Kuhn 1950): probabilities a and 3a."""

    def problem(self, game):
        """Return an error message for a game that cannot be measured, with what to use instead; else None."""
        return None if list(game.buckets) == [3, 3] else f"{game.name} has not three cards beside its tree: use exact"

    def find(self, side, against, options):
        """Return the ratio. `probability[block]` is [buckets, slots]; the first two slots are check and bet."""
        jack, _, king = side.strategy.probability[0][:, 1]
        return {"value_chips": float(jack / king), "jack": float(jack), "king": float(king)}
