"""Errors planted in the sampled kernels: one mutant holds several, and each run selects one.

Each test process compiles a mutant anew, which takes seconds. Its errors are therefore branches on a cell of `limits`
that production kernels do not have (`Trainer(planted=...)`).  With 0 the mutant has no error.
"""

from functools import cache
from types import ModuleType

from mutants import mutant

from mccfr.solvers import dcfr_discount
from mccfr.solvers.sampling.external import external_packed as external
from mccfr.solvers.sampling.outcome import outcome_packed as outcome

AT_OWN_NODES, OPPONENT_REACH = 1, 2
SKIPS_ON_THE_LAST_STREET, NO_FLOOR, THRESHOLD_WITHOUT_WEIGHT, SKIPS_IN_UNIFORM_PLAY = 5, 6, 7, 8
"""Errors of external sampling:

AT_OWN_NODES    the average strategy is accumulated at the traverser's nodes, without the traverser's reach
OPPONENT_REACH  regrets carry the opponent's reach, which the sampling has already supplied
the others      parts of the rule of sampled pruning are left out
"""

UNDIVIDED, UNDIVIDED_REGRETS, UNDIVIDED_SUMS, WORTH_STAYS = 1, 2, 3, 4
"""Errors of outcome sampling:

UNDIVIDED    nothing is divided by the probability of the traverser's own choices; or regrets alone, or sums alone
WORTH_STAYS  the value of a decision leaves out the own reach after it
"""

_ADDITION = "add_row(strategy_sum, added, actions, sigma, mine, part, word)"
_PUSHED = "order[tail], slot[tail], start[tail] = first, goes, regrets[block] + below.slot\n"
_REACH = f"""                        reach[tail] = reach[position]
                        if limits[3] == {OPPONENT_REACH} and node.player != traverser:
                            reach[tail] *= sigma[np.uint64(mine + action)]
"""


def _unless(error: int, right: str, wrong: str) -> str:
    """Return an expression that is `wrong` in runs with the error, and otherwise `right`."""
    return f"({right} if limits[3] != {error} else {wrong})"


@cache
def wrong_external() -> ModuleType:
    """Return external sampling (over packed trees) with its errors, compiled once a process."""
    bounds = "prune_below, floor, first_floor ="
    here = f"{bounds} -pruning.below * weight, -pruning.floor * weight, -pruning.first_floor * weight"
    prune_below = f"-pruning.below * {_unless(THRESHOLD_WITHOUT_WEIGHT, 'weight', '1.0')}"
    floors = [_unless(NO_FLOOR, f"-pruning.{which} * weight", "-np.inf") for which in ("floor", "first_floor")]
    return mutant(
        external,
        ("inline_njit, nogil_njit", "inline_njit, allocating_njit"),  # `reach` is an array
        ("@nogil_njit\ndef external_sampling_packed(", "@allocating_njit\ndef external_sampling_packed("),
        (f"    {here}\n", f"    {bounds} {prune_below}, {', '.join(floors)}\n    reach = np.ones(order.shape[0])\n"),
        (_ADDITION, _ADDITION.replace("part", _unless(AT_OWN_NODES, "part", "0.0"))),
        (
            "nodes += node.leaves_touched\n",
            "nodes += node.leaves_touched\n"
            f"                    if limits[3] == {AT_OWN_NODES}:\n"
            "                        added = sums[block] + node.slot\n"
            f"                        {_ADDITION.replace('part, word', 'weight, second_word(rng)')}\n",
        ),
        (_PUSHED, _PUSHED + _REACH),
        ("endings, weight)", "endings, weight * reach[position])"),
        (
            "traverser and node.block // players < last_street",
            f"traverser and (node.block // players < last_street or limits[3] == {SKIPS_ON_THE_LAST_STREET})",
        ),
        (
            "skips and sigma[np.uint64(mine + action)] == 0 and regret[",
            f"skips and (sigma[np.uint64(mine + action)] == 0 or limits[3] == {SKIPS_IN_UNIFORM_PLAY}) and regret[",
        ),
    )


@cache
def wrong_outcome() -> ModuleType:
    """Return outcome sampling (over packed trees) with its errors, compiled once a process."""
    decisions = "_opponents_decisions(tree, tables, others, level, count, paths, weight)"
    decided = "_opponents_decisions(tree, tables, others, level, count, paths, weight)"
    learns = "_learn(tables.regret, logged, paths, weight)"
    learnt = "_learn(regret, logged, paths, weight)"

    def divisor(error: int) -> str:
        return f"({_unless(UNDIVIDED, 'place.probability', '1.0')} if limits[3] != {error} else 1.0)"

    return mutant(
        outcome,
        *((f"{text}\n", f"{text[:-1]}, limits)\n") for text in (decisions, learns)),
        *((f"{text}:\n", f"{text[:-1]}, limits):\n") for text in (decided, learnt)),
        ("* payoff / place.probability\n        _learn", f"* payoff / {divisor(UNDIVIDED_REGRETS)}\n        _learn"),
        ("weight / place.probability, random_at", f"weight / {divisor(UNDIVIDED_SUMS)}, random_at"),
        (
            "place.value = node_value  # value",
            f"place.value = {_unless(WORTH_STAYS, 'node_value', 'place.value')}  # value",
        ),
    )


SWEEPS = {"never": ("if ends <= nodes_before:", "if True:"), "again": ("return ends\n", "return nodes_before\n")}
"""Errors of a sweep: it never happens, or its count is not saved, so that it happens again."""


@cache
def wrong_sweep(error: str) -> ModuleType:
    """Return `mccfr.solvers.dcfr_discount` with one of its errors, compiled once a process."""
    return mutant(dcfr_discount, SWEEPS[error])
