"""Local best response: what a simple opponent who knows the policy wins from it, a lower bound of its exploitability.

Lisy & Bowling 2017, "Equilibrium approximation quality of current no-limit poker bots".  The responder keeps the
policy's range by Bayes' rule over all hands that it may hold, and wherever he acts takes the action with the highest
value under the assumption that after it, and the answer to it, both players only check and call to the end.  What he
wins is no more than what a best response would, in expectation: he is one opponent among all.

**The real game.**  In no-limit hold'em the responder's bets are real ones, which the policy takes for those of its tree
(`mccfr.games.translation`).  It draws what it takes a bet for, once, and remembers it; the responder does not see the
draw.  So his range is a joint distribution of the policy's hand and of where it is in its tree: the fold probability of
a bet, Bayes' rule and every value sum over both.

**What is drawn and what is averaged.**  A unit is a deal of both hands and the board, played from both seats with the
hand of the seat.  The responder's actions follow from his cards, the board and the betting.  So whatever the policy
holds and has drawn can be averaged over, given these ("imaginary observations", Bowling, Johanson, Burch & Szafron
2008):

* neither the policy's hand nor its draws are ever drawn: an action of it is drawn from the marginal of its range, and
  folds and showdowns are paid by the mean over the range;
* of its actions, those that end the hand are all paid, each with its probability.  Of those after which it goes on, all
  are followed where much is at stake, and of the others one, drawn by what is at stake, stands for all of them;
* an all-in is paid by the mean over the boards to come: all of them on the turn, and on the flop where the responder
  looks at them anyway; else over `RUN_OUTS` drawn ones, and the right divisor;
* the board is drawn as if the policy held nothing, and each of its hands weighs as much as it makes that board likelier
  (`dealt`).

* what goes with the luck of his cards - how his hand does at a showdown against any other on the full board, which is 0
  on average - is taken off, by a factor that is fitted on the other half of the units.

Each of these is a conditional expectation, importance sampling with exact weights, or takes off something of mean 0; so
the mean over units is what the responder wins in expectation, whatever he does.  What he decides by may be approximate,
and is before the flop, where his chances are taken from `LOOKED_BOARDS` boards: a lower bound stays one.

Small games are not sampled: every deal and every action of the policy is followed, and the value is exact.
"""

from mccfr.evaluation.local_best_response.evaluate import (
    DEFAULT_HANDS,
    LEAST_HANDS,
    LocalBestResponse,
    local_best_response,
)
from mccfr.evaluation.local_best_response.settings import SETTINGS, check_setting

__all__ = ["DEFAULT_HANDS", "LEAST_HANDS", "SETTINGS", "LocalBestResponse", "check_setting", "local_best_response"]
