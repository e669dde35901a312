"""Trained best response: a lower bound on exploitability from an opponent trained against a policy.

The policy is fixed. A responder is trained against it with the samplers that train policies, by default with the
tree's bets. Its buckets are its own: lossless for games with listed boards, a finer abstraction in full-deck hold'em.
Unlike computed best responses it may not know its real cards, but it responds on all streets. Timbers et al. 2022,
"Approximate exploitability: learning a best response", train networks; this uses regret tables, as Lanctot, Waugh,
Zinkevich & Bowling 2009.

**A lower bound in expectation.** The trained responder is a strategy of the real game, so a best response wins at
least as much. Three independent streams of cards avoid selection bias:

* the first trains the responder (`mccfr.solvers.responder`)
* the second chooses one of several training checkpoints and one of two ways to play by regrets
* the third measures the chosen responder's chips

On each board all pairs of hands meet (`mccfr.evaluation.head_to_head`), so only boards are sampled. Each seat has
its own responder, trained and chosen separately.
"""

from mccfr.evaluation.trained_best_response.trained_br_evaluation import TrainedBestResponse, trained_best_response

__all__ = ["TrainedBestResponse", "trained_best_response"]
