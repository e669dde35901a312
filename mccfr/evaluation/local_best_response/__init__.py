"""Local best response (LBR): a lower bound on a policy's exploitability from a simple responder.

Lisy & Bowling 2017, "Equilibrium approximation quality of current no-limit poker bots". The responder knows the
policy and keeps its range by Bayes' rule. It values each action as if both players only check and call after it and
the policy's answer. It takes the action with the highest value. Its expected chips are at most those of a best
response.

**The real game.** In no-limit hold'em the responder bets real amounts, which the policy translates into its tree
(`mccfr.games.translation`). The policy draws a translation once and keeps it; the responder does not see it. The
policy's range is therefore a joint distribution of its hand and the tree node to which it has translated the betting.

**Variance reduction.** A sample is a deal of both hands and the board, played from both seats. The responder's
actions depend only on its cards, the board and the betting. The policy's hand and translations can therefore be
averaged out ("imaginary observations", Bowling, Johanson, Burch & Szafron 2008):

* The policy's actions are drawn from the marginal of its range; folds and showdowns pay the mean over the range.
* Actions of the policy that end the hand are all paid, weighted by probability. Of the others, those with large stakes
  are all followed. One of the rest, drawn in proportion to stakes, stands for all of them.
* An all-in pays the mean over the boards to come: all of them on the turn, and on the flop if the responder enumerates
  them anyway. Otherwise it is over 32 drawn boards, and unbiased.
* The board is drawn without regard to the policy's hand; importance weights of the hands correct for it
  (`responder_deals`).
* A control variate removes the luck of the cards: the hand's mean showdown result on the full board, which is 0 on
  average. Its factor is fitted on the other half of the samples.

Each step keeps the expectation, so the mean over samples is unbiased for the responder's chips. Its decisions may be
approximate: before the flop its equity comes from 4,096 fixed boards. The result is still a lower bound.

Small games are enumerated: every deal and every action of the policy is followed, and the value is exact.

`hand` has the loop: the responder's choice and the hand's chips.  `lbr_evaluation` takes the mean over samples.
"""

from mccfr.evaluation.local_best_response.lbr_evaluation import (
    DEFAULT_HANDS,
    LEAST_HANDS,
    local_best_response,
    plays_every_deal,
)
from mccfr.evaluation.local_best_response.settings import SETTINGS, check_setting

__all__ = ["DEFAULT_HANDS", "LEAST_HANDS", "SETTINGS", "check_setting", "local_best_response", "plays_every_deal"]
