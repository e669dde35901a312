"""Trained best response: what an opponent wins who has learnt to answer a policy, a lower bound on exploitability.

The policy stands still; an opponent is trained against it by the sampler that trains policies, with his cards in
buckets of his own - every hand of a game whose boards are listed, a finer abstraction in whole hold'em - and with the
bets of the tree.  He need not know his real cards, as computed best responses do, but he answers on all streets, so
that nothing of what the policy does early escapes him.  (Responses that are learnt: Timbers et al. 2022, "Approximate
exploitability: learning a best response"; here by regrets in tables, as Lanctot, Waugh, Zinkevich & Bowling 2009.)

**A lower bound in expectation.**  Whatever he has learnt is a strategy of the real game, and a best response wins at
the least as much.  Three streams of cards keep his figure free of the luck that he was made by.  He learns from the
first (`mccfr.solvers.responder`); one of several moments of his training, and one of two ways to play by his regrets,
is chosen by the second; and what the chosen one wins is measured on the third.  On each board all pairs of hands meet
(`mccfr.evaluation.head_to_head`), so that only the boards are sampled.  Seats are two opponents: each learns by itself,
and is chosen by itself.
"""

from mccfr.evaluation.trained_best_response.evaluate import TrainedBestResponse, trained_best_response

__all__ = ["TrainedBestResponse", "trained_best_response"]
