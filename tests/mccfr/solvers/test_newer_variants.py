"""Full-width variants after 2019 against the recurrences of their papers.

Xu et al. 2024 (IJCAI, arXiv 2404.13891), section 4: DCFR+, PDCFR+.  Zhang, McAleer & Sandholm 2026 (AAAI, arXiv
2404.09097), equations 2 to 4 and section 3.2: HS-DCFR, HS-PCFR+.  Farina, Kroer & Sandholm 2021: PCFR+.

Shows:

* Newer variants equal the recurrences of their papers (test_variants_are_those_of_their_papers; planted:
  test_planted_errors_are_seen)
"""

from dataclasses import replace
from math import inf

import mutants
import naive
import numpy as np
import pytest
from commands import call, command
from small_games import unequal

from mccfr.config.game_tables import KuhnGame, PokerGame
from mccfr.games.poker import kuhn, poker
from mccfr.runs.directory.run import open_run
from mccfr.runs.results.checkpoints import find_checkpoint, read_tables
from mccfr.solvers import variants
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.variants import variant

HORIZON = 6


GAMES = {
    "kuhn": kuhn(KuhnGame()),
    "poker": unequal(poker(PokerGame(ranks=4, hole_cards=2, antes=(1, 1), stack=3, max_raises=(1, 1))), missing=0),
}
FLOORED = ("dcfr+", "pcfr+", "pdcfr+", "hs-pcfr+")


def papers_powers(name, t, n=HORIZON):
    """α, β, γ of iteration t of n, as the papers have them."""
    gamma_15 = 15 - 5 * t / n
    return {
        "dcfr+": (1.5, None, 4),
        "pcfr+": (inf, None, 2),
        "pdcfr+": (2.3, None, 5),
        "hs-dcfr": (1 + 3 * t / n, -1 - 2 * t / n, gamma_15),
        "hs-pcfr+": (inf, None, gamma_15),
    }[name]


class Papers(naive.Cfr):
    """The recurrences as the papers write them: an iteration's own discount comes with the next one.

    R_t = R_{t-1}·d_{t-1} + r_t, floored at 0 where the name has a plus; a P plays [R_t·d_t + r_t]+;
    S_t = S_{t-1}·((t-1)/t)^γ_t + π·σ_t.
    """

    def __init__(self, game, name):
        super().__init__(game, variant("cfr"))
        self.name = name
        self.regrets = [np.zeros_like(table) for table in self.regret]

    def factors(self, t, regrets):
        alpha, beta, _ = papers_powers(self.name, t)
        if t == 0:
            return np.ones_like(regrets)
        return np.where(regrets > 0, naive.discount(alpha, t), 0 if beta is None else naive.discount(beta, t))

    def iterate(self):
        self.t += 1
        for player in range(2):
            sigma, ones = self.strategy(), np.ones(len(self.weight))
            increments = [np.zeros_like(table) for table in self.regret]
            for block in range(player, len(self.sums), 2):
                self.sums[block] *= ((self.t - 1) / self.t) ** papers_powers(self.name, self.t)[2]
            self._visit(0, player, sigma, ones, ones, increments)
            for block in range(player, len(self.sums), 2):
                old, gained = self.regrets[block], increments[block]
                new = old * self.factors(self.t - 1, old) + gained
                self.regrets[block] = np.maximum(new, 0) if self.name in FLOORED else new
                if self.name.startswith("p") or self.name.startswith("hs-p"):
                    new = self.regrets[block] * self.factors(self.t, self.regrets[block]) + gained
                self.regret[block] = new  # what the next strategy is made of


def difference(game, name, iterations=HORIZON, made=None):
    """Largest difference of average and next strategies from the papers' recurrences."""
    if made is None:
        made = variant(name)
        made = replace(made, horizon=HORIZON) if made.scheduled else made
    cfr, twin, worst = VectorCfr(game, made, "float64"), Papers(game, name), 0.0
    for _ in range(iterations):
        cfr.iterate()
        twin.iterate()
        averages = [table.copy() for table in twin.sums]
        for node in game.tree.decisions:
            slot, count = int(game.tree.arrays.slot[node]), int(game.tree.arrays.count[node])
            rows = averages[game.tree.arrays.block[node]][:, slot : slot + count]
            total = rows.sum(axis=1, keepdims=True)
            rows[:] = np.where(total > 0, rows / np.maximum(total, 1e-300), 1 / count)
        for mine, theirs in (
            (cfr.average_strategy().probability, averages),
            (cfr.current_strategy().probability, twin.strategy()),
        ):
            worst = max(worst, *(float(np.abs(a - b).max(initial=0)) for a, b in zip(mine, theirs, strict=True)))
    return worst


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("name", ["dcfr+", "pcfr+", "pdcfr+", "hs-dcfr", "hs-pcfr+"])
def test_variants_are_those_of_their_papers(name, game):
    assert difference(GAMES[game], name) < 1e-10


PLANTED = {
    "the schedule begins at its end's side of an iteration": (
        ("share = iteration / (self.horizon or 1)", "share = (iteration - 1) / (self.horizon or 1)"),
        "hs-dcfr",
    ),
    "the average's weight is one iteration late": (
        ("((iteration - 1) / iteration) ** gamma", "(iteration / (iteration + 1)) ** gamma"),
        "dcfr+",
    ),
    "the discount of regrets is one iteration late": (
        ("_regret_factor(iteration, alpha)", "_regret_factor(iteration + 1, alpha)"),
        "pdcfr+",
    ),
    "the prediction forgets the discount": (
        ('PREDICTIVE if self.regret_minimiser == "predictive" else OPTIMISTIC', "OPTIMISTIC"),
        "pdcfr+",
    ),
}


@pytest.mark.parametrize("error", PLANTED)
def test_planted_errors_are_seen(error):
    edit, name = PLANTED[error]
    wrong = mutants.mutant(variants, edit).variant(name)
    wrong = replace(wrong, horizon=HORIZON) if wrong.scheduled else wrong
    assert difference(GAMES["poker"], name, made=wrong) > 1e-4


# --- the horizon of a run ---


def tables_of(directory):
    """Tables by name, of a run's newest checkpoint."""
    return read_tables(find_checkpoint(open_run(directory), None))


def test_a_run_keeps_the_horizon_it_was_made_with(capsys, tmp_path):
    """`resume` goes beyond the horizon with the powers of its end; `solve` refuses to."""
    config, run = tmp_path / "kuhn.toml", tmp_path / "run"
    config.write_text(
        '[game]\nname = "kuhn"\n[solver]\nalgorithm = "cfr"\nvariant = "hs-dcfr"\n[run]\nworkers = 0\niterations = 40\n'
    )
    assert command("solve", config, "--run", run, "--iterations", 20) == 0
    assert open_run(run).config.solver.horizon == 20
    code, _, said = call(capsys, "resume", run, "--iterations", 50)
    assert code == 0
    assert "run.iterations = 50 goes beyond solver.horizon = 20, which the run keeps" in said
    game = kuhn(KuhnGame())
    whole = VectorCfr(game, variant("hs-dcfr", horizon=20), "float64")
    whole.iterate(50)
    for name, table in tables_of(run).items():
        assert table.tobytes() == whole.tables[name].tobytes(), name
    code, _, said = call(capsys, "solve", config, "--run", run)
    assert code == 2
    assert "holds another run: solver.horizon = 20 there and 40 here" in said


def test_without_planned_iterations_a_schedule_is_refused(capsys, tmp_path):
    config = tmp_path / "kuhn.toml"
    config.write_text('[game]\nname = "kuhn"\n[solver]\nalgorithm = "cfr"\nvariant = "hs-pcfr+"\n')
    for arguments in (("solve", config, "--time", "1s", "--run", tmp_path / "run"), ("plan", config)):
        code, _, said = call(capsys, *arguments)
        assert code == 2 and said.count("\n") == 1
        assert "solver.variant = 'hs-pcfr+' follows a schedule and needs the number of iterations" in said
    assert sorted(tmp_path.iterdir()) == [config]
    assert command("plan", config, "--set", "solver.horizon=100") == 0
