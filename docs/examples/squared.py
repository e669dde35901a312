"""A regret rule: in proportion to the squares of the positive regrets (Cesa-Bianchi & Lugosi 2003)."""

import mccfr


@mccfr.regret_rule
def squared(regrets, strategy):
    """Fill strategy [A] from regrets [A], both float64, independently of the regrets' scale."""
    total = 0.0
    for a in range(len(regrets)):
        strategy[a] = max(regrets[a], 0.0) ** 2
        total += strategy[a]
    for a in range(len(regrets)):
        strategy[a] = strategy[a] / total if total > 0.0 else 1.0 / len(regrets)


dcfr = mccfr.Variant(squared, alpha=1.5, beta=0.0, averaging_power=2.0)
