"""Average strategy sampling (Gibson, Burch, Lanctot & Szafron 2012, "Efficient Monte Carlo Counterfactual Regret
Minimization in Games with Many Player Actions", algorithm 1).

External sampling, but the traverser does not walk all his actions: each is drawn by itself with the probability

    rho(a) = max(epsilon, (beta + tau·s(a)) / (beta + sum of s))

where s is the row of his own strategy sums: what he has played for more than a share of 1/tau is walked always, what he
has hardly played with probability epsilon, and while a row is young beta has all of them walked.  What is drawn is
divided by rho (`mccfr.solvers.sampling.partial`), so no expectation differs from external sampling's.  As sums are
discounted, beta counts in units of the weight that additions have at present.
"""

from abstraction.jit import part_njit
from mccfr.rng import uniform


@part_njit
def draw_by_average(sums, row, actions, epsilon, tau, beta, rng, chance, first):
    """Draw actions: chance[first+a] is rho(a) where an action is drawn, 0 where it is not, in place.

    sums  flat table, whose row begins at cell `row`; beta in units of what is in it
    """
    total = beta
    for a in range(actions):
        total += sums[row + a]
    for a in range(actions):
        rho = max(epsilon, (beta + tau * sums[row + a]) / total)
        if rho >= 1.0:
            chance[first + a] = 1.0
        else:
            chance[first + a] = rho if uniform(rng) < rho else 0.0
