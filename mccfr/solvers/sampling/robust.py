"""Robust sampling (Li, Hu, Zhang, Qi & Song 2020, "Double Neural Counterfactual Regret Minimization", section 4).

External sampling, but the traverser walks k of his actions, drawn evenly, or all where there are no more.  Each is
drawn with probability k/n, by which its value is divided (`mccfr.solvers.sampling.partial`).  With k = 1 a traversal is
a path, with k as large as any n it is that of external sampling, bit for bit.
"""

from abstraction.jit import part_njit
from mccfr.rng import uniform


@part_njit
def draw_evenly(actions, most, rng, chance, first):
    """Draw min(most, actions) actions: chance[first+a] is their share where one is drawn, 0 where not, in place."""
    left = min(most, actions)
    share = left / actions
    for a in range(actions):
        if left == actions - a or uniform(rng) * (actions - a) < left:  # one by one, so many of those that remain
            chance[first + a] = share
            left -= 1
        else:
            chance[first + a] = 0.0
