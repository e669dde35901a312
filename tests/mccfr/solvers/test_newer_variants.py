"""Full-width CFR variants published after 2019, against the recurrences of their papers.

Xu et al. 2024 (IJCAI, arXiv 2404.13891), section 4: DCFR+, PDCFR+.  Zhang, McAleer & Sandholm 2026 (AAAI, arXiv
2404.09097), equations 2 to 4 and section 3.2: HS-DCFR, HS-PCFR+.  Farina, Kroer & Sandholm 2021: PCFR+.

Shows:

* Newer variants equal the recurrences of their papers (test_variants_equal_the_recurrences_of_their_papers; planted:
  test_planted_errors_in_variants_are_caught)
"""

from dataclasses import replace
from math import inf, nan

import mutants
import naive
import numpy as np
import pytest
from commands import call, command
from refusals import refusals, refused
from small_games import unequal

import mccfr
from mccfr.runs.directory.run import open_run
from mccfr.runs.results.checkpoints import find_checkpoint, read_tables
from mccfr.solvers import variants
from mccfr.solvers.minimisers import Rows, Tables, current_strategy
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.variants import PRESETS, Ramp, Variant, variant, warnings

HORIZON = 6


GAMES = {
    "kuhn": mccfr.game("kuhn"),
    "poker": unequal(mccfr.game("poker", ranks=4, hole_cards=2, antes=(1, 1), stack=3, max_raises=(1, 1)), missing=0),
}
FLOORED = ("dcfr+", "pcfr+", "pdcfr+", "hs-pcfr+")


def papers_powers(name, t, n=HORIZON):
    """Return α, β, γ of iteration t of n, as in the papers."""
    gamma_15 = 15 - 5 * t / n
    return {
        "dcfr+": (1.5, None, 4),
        "pcfr+": (inf, None, 2),
        "pdcfr+": (2.3, None, 5),
        "hs-dcfr": (1 + 3 * t / n, -1 - 2 * t / n, gamma_15),
        "hs-pcfr+": (inf, None, gamma_15),
    }[name]


class Papers(naive.Cfr):
    """The recurrences as in the papers: the next iteration applies an iteration's discount.

    R_t = R_{t-1}·d_{t-1} + r_t, floored at 0 in variants with a plus in the name. Predictive variants (P) play
    [R_t·d_t + r_t]+. Strategy sums are S_t = S_{t-1}·((t-1)/t)^γ_t + π·σ_t.
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
                self.regret[block] = new  # regret matching computes the next strategy from these


def difference(game, name, iterations=HORIZON, cfr_variant=None):
    """Return the largest difference of average and next strategies from the papers' recurrences."""
    if cfr_variant is None:
        cfr_variant = variant(name)
        cfr_variant = replace(cfr_variant, horizon=HORIZON) if cfr_variant.scheduled else cfr_variant
    cfr, twin, worst = VectorCfr(game, cfr_variant, "float64"), Papers(game, name), 0.0
    for _ in range(iterations):
        cfr.iterate()
        twin.iterate()
        for mine, theirs in (
            (cfr.average_strategy().probability, twin.average()),
            (cfr.current_strategy().probability, twin.strategy()),
        ):
            worst = max(worst, *(float(np.abs(a - b).max(initial=0)) for a, b in zip(mine, theirs, strict=True)))
    return worst


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("name", ["dcfr+", "pcfr+", "pdcfr+", "hs-dcfr", "hs-pcfr+"])
def test_variants_equal_the_recurrences_of_their_papers(name, game):
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
def test_planted_errors_in_variants_are_caught(error):
    edit, name = PLANTED[error]
    wrong = mutants.mutant(variants, edit).variant(name)
    wrong = replace(wrong, horizon=HORIZON) if wrong.scheduled else wrong
    assert difference(GAMES["poker"], name, cfr_variant=wrong) > 1e-4


# --- the horizon of a run ---


def tables_of(directory):
    """Return the tables of a run's newest checkpoint by name."""
    return read_tables(find_checkpoint(open_run(directory), None))


def test_a_resumed_run_keeps_its_horizon(capsys, tmp_path):
    """`resume` continues beyond the horizon with its last powers; `solve` refuses another horizon."""
    config, run = tmp_path / "kuhn.toml", tmp_path / "run"
    config.write_text(
        '[game]\nname = "kuhn"\n[solver]\nalgorithm = "cfr"\nvariant = "hs-dcfr"\n[run]\nworkers = 0\niterations = 40\n'
    )
    assert command("solve", config, "--run", run, "--iterations", 20) == 0
    assert open_run(run).config.solver.horizon == 20
    code, _, messages = call(capsys, "resume", run, "--iterations", 50)
    assert code == 0
    assert "run.iterations = 50 goes beyond solver.horizon = 20, which the run keeps" in messages
    game = mccfr.game("kuhn")
    whole = VectorCfr(game, variant("hs-dcfr", horizon=20), "float64")
    whole.iterate(50)
    for name, table in tables_of(run).items():
        assert table.tobytes() == whole.tables[name].tobytes(), name
    code, _, messages = call(capsys, "solve", config, "--run", run)
    assert code == 2
    assert "holds another run: solver.horizon = 20 there and 40 here" in messages


def test_a_scheduled_variant_without_planned_iterations_is_refused(capsys, tmp_path):
    config = tmp_path / "kuhn.toml"
    config.write_text('[game]\nname = "kuhn"\n[solver]\nalgorithm = "cfr"\nvariant = "hs-pcfr+"\n')
    for arguments in (("solve", config, "--time", "1s", "--run", tmp_path / "run"), ("plan", config)):
        code, _, messages = call(capsys, *arguments)
        assert code == 2 and messages.count("\n") == 1
        assert "solver.variant = 'hs-pcfr+' follows a schedule and needs the number of iterations" in messages
    assert sorted(tmp_path.iterdir()) == [config]
    assert command("plan", config, "--set", "solver.horizon=100") == 0


def strategy_of(name, regrets):
    """Return the float64 strategy [actions, columns] that a variant computes from regrets."""
    table = np.ascontiguousarray(regrets, np.float64)
    sigma, rows = np.zeros_like(table), Rows(0, len(table), 0, table.shape[1])
    current_strategy(variant(name).step(1), Tables(table, table, table), rows, sigma, 0)
    return sigma


def test_normal_hedge_does_not_depend_on_scale():
    regrets = np.random.default_rng(4).normal(size=(9, 50))
    for scale in (1e-150, 1e150):
        np.testing.assert_allclose(strategy_of("nh-dcfr", scale * regrets), strategy_of("nh-dcfr", regrets), rtol=1e-12)


def test_parameters_of_variants_can_be_combined():
    pdcfr = variant("pdcfr+", updates="simultaneous", averaging_power=0)
    assert (pdcfr.optimistic, pdcfr.beta, pdcfr.alpha, pdcfr.averaging_power) == (True, -inf, 2.3, 0)
    assert not pdcfr.alternating
    assert variant("hs-dcfr-30", horizon=9) == replace(variant("hs-dcfr"), averaging_power=Ramp(30, 25), horizon=9)
    assert variant("hs-dcfr", alpha=1.5, horizon=10).powers(5) == (1.5, -2, 12.5)
    assert not variant("hs-pcfr+", averaging_power=2).scheduled


test_invalid_parameters_are_refused = refusals(
    ("variant = 'cfr\\+\\+': one of cfr, ", {"name": "cfr++"}),
    ("regret_minimiser = 'hedge': one of regret-matching, ", {"name": Variant("hedge")}),
    ("updates = 'random': one of alternating, simultaneous", {"updates": "random"}),
    ("averaging_power = -1: .* at least 0", {"averaging_power": -1}),
    ("averaging_power = inf: a finite number", {"averaging_power": inf}),
    ("alpha = -inf: a number or inf", {"alpha": -inf}),
    ("alpha = nan", {"alpha": nan}),
    ("beta = nan", {"beta": nan}),
    ("beta = 0 with regret_minimiser = 'regret-matching-plus'", {"name": "cfr+", "beta": 0}),
    ("optimistic = false", {"name": Variant("predictive", beta=-inf)}),
    ("horizon = 100, and nothing of this variant follows a schedule", {"name": "dcfr+", "horizon": 100}),
    ("horizon = 0: at least 1 iteration", {"name": "hs-pcfr+", "horizon": 0}),
    ("beta = 0 with regret_minimiser = 'predictive'", {"name": "hs-pcfr+", "beta": 0}),
    call=lambda parts: variant(**parts),
)


def test_a_schedule_needs_a_horizon():
    refused(r"horizon = None: .* the planned number of iterations", variant("hs-dcfr").step, 1)


def test_unusual_parameters_give_warnings():
    assert "beta = 2 is above alpha = 1.5" in warnings(variant("dcfr", beta=2))[0]
    assert "alpha = -1" in warnings(variant("dcfr", alpha=-1, beta=-2))[0]
    assert [name for name in PRESETS if variant(name) != PRESETS[name] or warnings(variant(name))] == []
