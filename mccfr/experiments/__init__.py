"""Experiments: several variants and seeds of one run, measured and compared in tables and a plot."""

from mccfr.experiments.definition import Experiment, ExperimentVariant, experiment_from, load_experiment
from mccfr.experiments.experiment_runs import run_experiment
from mccfr.experiments.result_table import Curve, curves, publish, read_rows

__all__ = [
    "Curve",
    "Experiment",
    "ExperimentVariant",
    "curves",
    "experiment_from",
    "load_experiment",
    "publish",
    "read_rows",
    "run_experiment",
]
