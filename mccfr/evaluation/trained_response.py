"""Values of a strategy for three and more players, and gains of responses trained against it.

A player's response is trained by external-sampling MCCFR in which only that player updates regrets.  The others play
the strategy that is measured.  The response is the current strategy (by regret matching) at the end of training.  Value
and gain are scored on other deals.  The response is not a best response, so its mean gain is a lower bound on a best
response's gain.

The compiled code is that of training.  A fixed strategy is stored as regrets in proportion to its probabilities.
Scoring is a traversal with updates of weight 0: it walks all actions of the player and samples those of the others.
The player's strategy and its response are scored on the same samples, so the variance of their difference is small.
"""

from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import nogil_njit
from mccfr.cards.deals import new_deals
from mccfr.common.intervals import Estimate, student95
from mccfr.common.rng import EVALUATION, new_stream
from mccfr.evaluation.evaluation_progress import report_step
from mccfr.evaluation.samples import Effort, SampledEvaluation, run_samples
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.sampling.external.external_packed import (
    PackedWorklist,
    external_sampling_packed,
    new_packed_worklist,
)
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.strategy import Strategy
from mccfr.tables.table_layout import TableArrays, make_layout, private_tables, table_name
from mccfr.trees.compiled import pack

SAMPLE_DEALS = 256
"""Deals in a sample."""
_BATCH_DEALS, _BATCH_NODES = 4096, 1_000_000
_REPORT_SECONDS = 0.5
_TRAINING_WORKER, _SCORING_WORKER = 1 << 34, 1 << 35
"""Worker numbers of the dealers of responses and of scoring; no worker of a run has them."""


class TrainedResponses(NamedTuple):
    """Values and gains of P players in chips, each with half its 95 % interval (`Estimate`).

    values  [P] chips per deal of each player, if all play the strategy
    gains   [P] chips per deal that each player's trained response wins more than the player's strategy
    deals   number of deals scored
    """

    values: list[Estimate]
    gains: list[Estimate]
    deals: int


@nogil_njit
def _score(tree, tables, deals, limits, rng, work, values):
    """Play K deals by a fixed strategy; write the traverser's sampled chips of each to `values`.

    tree    packed nodes of the betting tree
    tables  `TableArrays`, whose strategy by regret matching is played; not changed, because updates have weight 0
    deals   `Deals` of at least K entries
    limits  [3] int64, scratch memory
    rng     [4] uint64 random state, advanced in place
    work    `PackedWorklist` (scratch memory of the traversal) with one traverser
    values  [K] float64, overwritten: chips of the deal
    """
    for deal in range(values.shape[0]):
        limits[0], limits[1], limits[2] = deal, deal + 1, 1
        external_sampling_packed(tree, tables, deals, limits, 0.0, rng, work)
        values[deal] = work.value[0]


def _traversing(work: PackedWorklist, player: int) -> PackedWorklist:
    """Make a player the only traverser in the scratch memory of traversals; return that memory.

    work    scratch memory, changed in place
    player  number of the player; a traversal then walks all of its actions
    """
    assert work.seats is not None
    work.seats.turns[:] = player, player + 1
    return work


class _Responses(SampledEvaluation):
    """Evaluates each player's value and its gain by a trained response; three or more players.

    A sample is 256 deals; `play` describes its result. The first call of `draw` trains the responses.
    """

    step, option = "sample", "deals"

    def __init__(self, side: Profile, nodes: int, seed: int, workers: int) -> None:
        assert isinstance(side.strategy, Strategy)
        game, strategy = side.game, side.strategy
        self.sides, self._game, self._seed, self._nodes = (side,), game, seed, nodes
        self.fields = 2 * game.tree.players
        self.identity_fields = {"method": "trained-response", "nodes": nodes, "seed": seed}
        cells: list[int] = []

        def doubled(count: int, dtype: str) -> npt.NDArray[np.generic]:
            """Allocate 2·count zeros: an array for the strategy's regrets, then the responses'."""
            cells.append(count)
            return np.zeros(2 * count, dtype)

        tables = private_tables(make_layout(game, summed_streets=0), doubled)
        for block, probability in enumerate(strategy.probability):
            if probability.size:
                table = tables[table_name("regret", block, game.tree.players)]
                table[:, : probability.shape[1]] = probability
        assert tables.kernel is not None
        self._tables, self._cells = tables.kernel, cells[0]
        self._tree, self._workers = pack(game.tree), workers
        self._work = self._worklist()
        self._done = np.zeros(game.tree.players, np.int64)  # nodes of each player's training
        self._trained = self._stopped = False

    def _own(self, player: int) -> TableArrays:
        """Return `TableArrays` in which a player plays its response and the others the strategy."""
        base = self._tables.regret_base.copy()
        base[player :: self._game.tree.players] += self._cells
        return self._tables._replace(regret_base=base)

    def draw(self, count: int) -> int:
        """Train all players' responses on the first call, in parallel threads; return `count`."""
        if not self._trained:
            self._trained = True
            with ThreadPoolExecutor(max(1, self._workers)) as pool:
                training = {pool.submit(self._train, player) for player in range(self._game.tree.players)}
                try:
                    while training:
                        done, training = wait(training, _REPORT_SECONDS, FIRST_EXCEPTION)
                        for future in done:
                            future.result()
                        report_step("responses: nodes", int(self._done.sum()), self._nodes * len(self._done))
                finally:
                    self._stopped = True
        return count

    def _worklist(self) -> PackedWorklist:
        return new_packed_worklist(self._game.tree, self._tables.regret.dtype)

    def _train(self, player: int) -> None:
        """Train a player's response by external sampling, until it has visited `nodes` tree nodes.

        The regrets are 0 at first. `nodes` is the argument of `trained_response`.
        """
        tree, players, nodes = self._game.tree, self._game.tree.players, self._done
        dealer = self._game.cards.dealer(self._seed, _TRAINING_WORKER + player)
        deals, rng = new_deals(_BATCH_DEALS, tree.streets, players), new_stream(self._seed, player, EVALUATION)
        schedule = Schedule("linear", max(1, min(10_000_000, self._nodes // 100)))
        tables, work, first, start = self._own(player), _traversing(self._worklist(), player), 0, _BATCH_DEALS
        while nodes[player] < self._nodes and not self._stopped:
            if start == _BATCH_DEALS:
                dealer.draw(first, _BATCH_DEALS, deals)
                first, start = first + _BATCH_DEALS, 0
            touched = int(nodes[player])
            most = min(_BATCH_NODES, self._nodes - touched, schedule.period_end(touched) - touched)
            limits, weight = np.array([start, _BATCH_DEALS, most]), schedule.weight(touched)
            done, new = external_sampling_packed(self._tree, tables, deals, limits, weight, rng, work)
            start, nodes[player] = start + int(done), touched + int(new)

    def play(self, sample: int) -> npt.NDArray[np.float64]:
        """Return [2·P] mean chips per deal over 256 deals: each player's value, then each one's gain.

        sample  number of the sample, which determines its deals
        """
        tree, players = self._game.tree, self._game.tree.players
        deals, limits = new_deals(SAMPLE_DEALS, tree.streets, players), np.zeros(3, np.int64)
        dealer = self._game.cards.dealer(self._seed, _SCORING_WORKER)
        dealer.draw(sample * SAMPLE_DEALS, SAMPLE_DEALS, deals)
        found = np.zeros((2, players))
        for player in range(players):
            values = np.zeros((2, SAMPLE_DEALS))
            work = _traversing(self._work, player)
            for tables, written in zip((self._tables, self._own(player)), values, strict=True):
                rng = new_stream(self._seed, players + player, EVALUATION, sample)
                _score(self._tree, tables, deals, limits, rng, work, written)
            found[:, player] = values[0].mean(), (values[1] - values[0]).mean()
        return found.reshape(-1)


def trained_response(
    side: Profile,
    nodes: int,
    deals: int,
    seed: int = 0,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
) -> TrainedResponses:
    """Train each player's response to the others' strategies; return values and gains in chips.

    side    game and strategy that are measured
    nodes   number of tree nodes that the training of each response visits
    deals   number of deals to score, rounded up to samples of 256 deals
    seed    seed of training and of the scored deals
    effort  number of workers, which are threads in training and processes in scoring; time budget and journal file of
            scoring

    Raises `ValueError` for fewer than two samples of 256 deals or too many for the memory, and if `effort.keep` belongs
    to another evaluation. Raises `OSError` if that file cannot be read or written, `StoppedError` if a signal stops it,
    and `RuntimeError` if a worker process dies.
    """
    evaluation = _Responses(side, nodes, seed, effort.workers)
    results = run_samples(evaluation, -(-deals // SAMPLE_DEALS), effort)
    within = student95(len(results) - 1) * results.std(axis=0, ddof=1) / len(results) ** 0.5
    figures = [Estimate(float(mean), float(half)) for mean, half in zip(results.mean(axis=0), within, strict=True)]
    players = side.game.tree.players
    return TrainedResponses(figures[:players], figures[players:], len(results) * SAMPLE_DEALS)
