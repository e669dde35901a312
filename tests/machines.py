"""Runs in strata on several machines, simulated as ranks of this process."""

import msgspec
import numpy as np
from sessions import NO_EVALUATION, Listener, make, with_limits
from stratified import LEDUC_12

from mccfr.cluster.messages import COMMAND, RUN, WRITE, RankLocation, copy_machines
from mccfr.cluster.rank_pool import cluster_pool_opener, restore_copies
from mccfr.cluster.trainer import Trainer
from mccfr.runs.directory.run import with_settings
from mccfr.runs.reporter import Silent
from mccfr.runs.session.train_and_export import train_and_export
from mccfr.runs.session.training_session import train

SOLVER = {"period_nodes": 100_000, "seed": 5}
LEDUC = '[game]\nname = "leduc"\nranks = 12\nmerge_suits = true\n'


def stratified_run(path, **settings):
    return make(path, SOLVER, LEDUC_12, evaluation=NO_EVALUATION, strata=4, **settings)


def on_machines(run, machines, reporter=None, workers=1, **settings):
    """Run a session on ranks of this process; return the engine."""
    run = with_limits(run, **settings)
    game = run.build_game()
    engine = OneProcess(run, game, machines, workers)
    train(run, game, reporter or Silent(), pools=cluster_pool_opener(engine))
    return engine


class OneProcess:
    """Implements `MpiEngine` with ranks that are objects of this process and train one after the other."""

    def __init__(self, run, game, machines, workers):
        self.locations = [RankLocation(rank // workers, "here", 0) for rank in range(machines * workers)]
        self._trainers = [Trainer(run, game, *place) for place in enumerate(copy_machines(self.locations))]
        self.sent_bytes = self.received_bytes = 0
        self._answers = {}

    def run(self, order):
        assert order.head[COMMAND] == RUN
        for trainer in self._trainers:
            self._tell(trainer, order)
            trainer.train()
            self._answers[trainer.rank] = trainer.answer

    def answer(self, rank):
        found = self._answers.pop(rank, None)
        if found is not None:
            self.received_bytes += found.cells.nbytes
        return found

    def write(self, order):
        assert order.head[COMMAND] == WRITE
        found = np.zeros_like(order.versions)
        for trainer in self._trainers:
            self._tell(trainer, order)
            found += trainer.write()
        return found

    def obey(self, order):
        found = []
        for trainer in self._trainers:
            self._tell(trainer, order)
            found += trainer.obey()
        return found

    def _tell(self, trainer, order):
        trainer.order.cells[:] = order.cells
        self.sent_bytes += order.cells.nbytes

    def close(self):
        self._answers.clear()


def with_copies_in(run, folder):
    """Return the run with a directory in `folder` on each machine, for second copies."""
    places = {"directory": str(folder / "disk{machine}")}
    return with_settings(run, cluster=msgspec.structs.replace(run.config.cluster, **places))


def train_alone_until(run, iterations):
    """Train on two simulated machines; return the reporter with the messages."""
    run, listener = with_limits(run, iterations=iterations), Listener()
    train_alone(run, run.build_game(), 2, listener)
    return listener


def train_alone(run, game, machines, reporter):
    """Train and export a run on machines simulated in this process."""
    engine = OneProcess(run, game, machines, max(1, run.config.run.workers))
    restore_copies(run, game, engine, reporter)
    train_and_export(run, game, reporter, pools=cluster_pool_opener(engine))
