"""Runs in strata, on machines that are ranks of this process."""

import msgspec
from sessions import NO_EVALUATION, make
from stratified import LEDUC_12

from mccfr.cluster.engine import OneProcess
from mccfr.cluster.pool import on_engine
from mccfr.runs.directory.run import with_settings
from mccfr.runs.reporter import Silent
from mccfr.runs.session.session import train

SOLVER = {"period_nodes": 100_000, "seed": 5}
LEDUC = '[game]\nname = "leduc"\nranks = 12\nmerge_suits = true\n'


def stratified_run(path, **settings):
    return make(path, SOLVER, LEDUC_12, evaluation=NO_EVALUATION, strata=4, **settings)


def on_machines(run, machines, reporter=None, workers=1, **settings):
    """A session on ranks of this process."""
    run = with_settings(run, run=msgspec.structs.replace(run.config.run, **settings))
    game = run.build_game()
    engine = OneProcess(run, game, machines, workers)
    train(run, game, reporter or Silent(), pools=on_engine(engine))
    return engine
