"""Average strategy, robust and targeted sampling: what a traversal adds up to on average, and planted errors.

Expectations are enumerated (`enumerated.py`), on tables in float64.  A rule of one set of streets has no random target;
what targets do together is the mean of the sets by their shares.
"""

from functools import cache
from math import comb

import numpy as np
import pytest
from enumerated import Traversals, mean_change
from harness import KUHN, LEDUC, MERGED_LEDUC, Trainer, same_tables
from mutants import mutant

import mccfr
from mccfr.config.games import LeducGame
from mccfr.games.expanded import expand
from mccfr.games.poker import leduc
from mccfr.solvers.sampling import partial
from mccfr.solvers.sampling.common import new_worklist
from mccfr.solvers.sampling.partial import ALL, BY_AVERAGE, EVENLY, new_draws, whole_rule
from mccfr.tables.discount import Schedule
from mccfr.trees.compiled import DECISION

NONE, UNDIVIDED, UNSCALED, SUMS_UNSCALED, BY_REGRETS = range(5)
AVERAGE = {"epsilon": 0.2, "tau": 1.5, "beta": 0.5}
ONE_BET = leduc(LeducGame(raises=1))
RULES = {
    "average": (KUHN, whole_rule(1, BY_AVERAGE, **AVERAGE)),
    "robust, 1": (ONE_BET, whole_rule(2, EVENLY, most=1)),
    "robust, 2": (KUHN, whole_rule(1, EVENLY, most=2)),
    "second street": (ONE_BET, whole_rule(2)._replace(targets=np.array([[0, 1]], np.uint8))),
    "close": (KUHN, whole_rule(1)._replace(targets=np.zeros((1, 1), np.uint8), close=0.2)),
}


@cache
def wrong():
    """The kernel with errors that a second cell of `Worklist.updated` chooses, compiled once a process."""
    return mutant(
        partial,
        ("value[child] / chance[child] if", f"value[child] / (chance[child] if {error(UNDIVIDED)} else 1.0) if"),
        ("weight = discount.weight / draws.reach[node]", f"weight = discount.weight / {reach('draws', UNSCALED)}"),
        (
            "weight = discount.sum_weight / reach[node]",
            f"weight = discount.sum_weight / {reach('draws', SUMS_UNSCALED)}",
        ),
        (
            "    else:\n        draw_by_average(tables.wide_sum",
            f"    elif not {error(BY_REGRETS)}:\n        row = work.start[node]\n"
            "        draw_by_average(tables.regret, row, actions, rule.epsilon, rule.tau, beta, rng, chance, first)\n"
            "    else:\n        draw_by_average(tables.wide_sum",
        ),
    )


def error(number):
    return f"work.updated[1] != {number}"


def reach(scratch, number):
    return f"({scratch}.reach[node] if {error(number)} else 1.0)"


class Play(Traversals):
    """Traversals by a rule, for one seat, that weigh 3 each, from strategy sums of their own."""

    def __init__(self, name, seat, planted=NONE):
        game, self.rule = RULES[name]
        super().__init__(game, weight=3.0, sum_scale=2.0)
        self.kernel = wrong().partial_sampling if planted else partial.partial_sampling
        nodes = game.tree.nodes
        self.scratch = new_worklist(nodes, 2 * game.tree.streets, "float64", (seat, seat + 1))
        self.scratch = self.scratch._replace(updated=np.array([0, planted]))
        self.draws = new_draws(nodes)
        self.own = self.draws, self.rule

    def rho(self, node):
        """Probabilities with which the paper draws the actions of a decision, one by one."""
        row = self.row(node, "sum_base")
        s, beta = self.start[row : row + self.tree.count[node]], AVERAGE["beta"] * self.weight
        return np.minimum(1, np.maximum(AVERAGE["epsilon"], (beta + AVERAGE["tau"] * s) / (beta + s.sum())))

    def passes(self, node):
        """Whether the traverser draws one action at an own decision and learns nothing."""
        row, actions = self.row(node), self.tree.count[node]
        second, highest = np.sort(self.start[row : row + actions])[-2:]
        is_close = highest - second < self.rule.close * self.weight
        return not (self.rule.targets[0, self.tree.block[node] // 2] or is_close)

    def sampled(self, seat):
        """(what has been sampled by the last traversal, its probability)."""
        chosen, probability, waiting = [], 1.0, [0]
        while waiting:
            node = waiting.pop()
            if self.tree.kind[node] != DECISION:
                continue
            children = np.arange(self.tree.first[node], self.tree.first[node] + self.tree.count[node])
            if self.tree.player[node] == seat and not self.passes(node):
                drawn = self.draws.chance[children] > 0
                if self.rule.draws == BY_AVERAGE:
                    probability *= np.where(drawn, self.rho(node), 1 - self.rho(node)).prod()
                elif self.rule.draws == EVENLY:
                    count = min(self.rule.most, len(drawn))
                    assert drawn.sum() == count
                    probability /= comb(len(drawn), count)
                below = children[drawn].tolist()
            else:
                below = [int(self.scratch.child[node])]
                probability *= self.sigma(node)[1][below[0] - children[0]]
            chosen += below
            waiting += below
        return tuple(chosen), probability


def errors_of_the_mean(name, seat, planted=NONE):
    """Largest differences between enumerated and exact increments, of regrets and of strategy sums."""
    play = Play(name, seat, planted)
    regrets, sums = play.expected_regrets(seat, play.passes), play.expected_sums(seat, play.passes)
    off = np.abs(mean_change(play, seat) - regrets - sums)
    return off[sums == 0].max(), off[sums != 0].max()


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("name", RULES)
def test_increments_are_right_on_average(name, seat):
    """Average strategy and robust sampling: exact regrets.  Targeted: those times the reach that is drawn."""
    assert max(errors_of_the_mean(name, seat)) < 1e-12


@pytest.mark.parametrize(
    ("planted", "name", "of_sums"),
    [
        (UNDIVIDED, "average", False),
        (UNDIVIDED, "robust, 1", False),
        (UNSCALED, "average", False),
        (UNSCALED, "robust, 1", False),
        (SUMS_UNSCALED, "robust, 1", True),
    ],
)
def test_planted_errors_are_caught(planted, name, of_sums):
    assert errors_of_the_mean(name, 0, planted)[of_sums] > 1e-2


def test_actions_are_drawn_by_the_average_strategy():
    """Whatever they are drawn by, expectations are right if it is divided by the same: so chances are looked at."""
    off = {}
    for planted in (NONE, BY_REGRETS):
        play = Play("average", 0, planted)
        for seed in range(20):
            play.run(seed)
            drawn = play.draws.chance[1:3]
            wrong_by = np.where(drawn > 0, np.abs(drawn - play.rho(0)), 0).max()
            off[planted] = max(off.get(planted, 0.0), wrong_by)
    assert off[NONE] < 1e-12
    assert off[BY_REGRETS] > 1e-2


def trainer(game, rule, schedule=None, seed=0):
    """A run by a rule in this process."""
    made = Trainer(game, general=True, schedule=schedule, seed=seed)
    made.kernel = partial.partial_sampling
    made.scratch = (*made.scratch, new_draws(game.tree.nodes), rule)
    return made


@pytest.mark.parametrize(
    "rule",
    [whole_rule(2), whole_rule(2, BY_AVERAGE), whole_rule(2, EVENLY, most=3)],
    ids=["targeted", "average", "robust"],
)
def test_with_every_action_it_is_external_sampling(rule):
    """To the last bit, with regrets and sums that are discounted as they are met; of Leduc's actions three is most."""
    schedule = Schedule("dcfr", 5_000)
    external = Trainer(LEDUC, general=True, schedule=schedule).train(500)
    drawn = trainer(LEDUC, rule, schedule).train(500)
    if rule.draws != BY_AVERAGE:
        assert same_tables(drawn, external)
        return
    for name, table in external.tables.items():  # sums of the traverser's rows are brought forward as well
        if name.startswith("regret/"):
            assert np.array_equal(table, drawn.tables[name])


def test_targets_are_drawn_by_their_shares_and_only_full_traversals_add_to_sums():
    never = whole_rule(2)._replace(targets=np.array([[1, 1], [0, 1]], np.uint8), ends=np.array([0.0, 1.0]))
    run = trainer(LEDUC, never).train(200)
    assert all(not run.tables[name].any() for name in run.tables if name.startswith("strategy_sum"))
    assert all(run.tables[f"regret/street1/player{player}"].any() for player in range(2))
    assert not any(run.tables[f"regret/street0/player{player}"].any() for player in range(2))
    shared = trainer(LEDUC, never._replace(ends=np.array([0.25, 1.0])))
    added = []
    for _ in range(1000):  # the first decision's row is added to by each traversal of the other player that is full
        shared.train(shared.iterations + 1)
        added.append(shared.tables["strategy_sum/street0/player0"].sum())
    full = np.count_nonzero(np.diff(added, prepend=0))
    assert abs(full - 250) < 4 * np.sqrt(1000 * 0.25 * 0.75)


@pytest.mark.parametrize(
    ("rule", "nodes"),
    [
        (whole_rule(2, BY_AVERAGE, epsilon=0.1, tau=10.0, beta=100.0), 35),
        (whole_rule(2, EVENLY, most=2), 35),
        (whole_rule(2)._replace(targets=np.array([[1, 1], [0, 1]], np.uint8), ends=np.array([0.5, 1.0])), 30),
    ],
    ids=["average", "robust", "targeted"],
)
def test_convergence_on_leduc(rule, nodes):
    """Fewer nodes an iteration than external sampling's 40; 0.033, 0.045 and 0.038 chips."""
    run = trainer(MERGED_LEDUC, rule, Schedule("linear", 500_000)).train(150_000)
    assert run.nodes < nodes * run.iterations
    assert run.exploitability_chips < 0.06


def test_scratch_has_room_for_chance_nodes():
    """A tree of histories has records of them too; what lies behind an array belongs to somebody else."""
    game = expand(KUHN).game
    solver = mccfr.solver(game, "average-strategy-sampling")._solver
    sizes = {
        len(solver._draws.chance),
        len(solver._draws.reach),
        len(solver._scratch.order),
        len(solver._scratch.value),
    }
    assert sizes == {len(game.tree.arrays.kind)} and len(game.tree.arrays.kind) > game.tree.nodes


def test_options_are_checked():
    for options, told in (
        ({"algorithm": "average-strategy-sampling", "bonus": 0}, "solver.bonus = 0"),
        ({"algorithm": "average-strategy-sampling", "epsilon": 1.5}, "solver.epsilon = 1.5"),
        ({"algorithm": "robust-sampling", "most_actions": 0}, "solver.most_actions = 0"),
        ({"algorithm": "targeted-sampling", "targets": [[0], []]}, "solver.targets"),
        ({"algorithm": "targeted-sampling", "targets": [[0]], "target_shares": [1, 1]}, "solver.target_shares"),
        ({"algorithm": "targeted-sampling", "targets": [[1, 2]]}, "names street 2"),
    ):
        with pytest.raises(ValueError, match=told.replace(".", r"\.")):
            mccfr.solver(LEDUC, **options)


def test_a_rule_has_the_shares_of_the_configuration():
    solver = mccfr.solver(LEDUC, "targeted-sampling", targets=[[0], [1]], target_shares=[1, 3])._solver
    assert solver._rule.ends == pytest.approx([0.2, 0.4, 1.0])
    assert solver._rule.targets.tolist() == [[1, 1], [1, 0], [0, 1]]
    later = mccfr.solver(LEDUC, "targeted-sampling")._solver._rule
    assert (later.draws, later.targets.tolist()) == (ALL, [[1, 1], [0, 1]])
