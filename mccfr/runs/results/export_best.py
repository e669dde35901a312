"""Chooses the checkpoint of `[export] best`, and evaluates it on new deals.

The minimum of several sampled figures is biased downwards, so the chosen checkpoint is measured again.
"""

from functools import partial
from typing import Any

from mccfr.evaluation.methods import measure, method_named, record_text
from mccfr.evaluation.methods.option_structs import declared
from mccfr.games.game import Game
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.directory.run import Run
from mccfr.runs.reporter import EVALUATING, Reporter
from mccfr.runs.results.average_strategies import stored_average
from mccfr.runs.results.checkpoint_evaluator import given_to
from mccfr.runs.results.checkpoints import best_checkpoint, read_checkpoint


def chosen_checkpoint(run: Run, game: Game, name: str, reporter: Reporter) -> int:
    """Return the number of the least exploitable checkpoint; report its figure with another seed.

    Raises `ValueError` if no checkpoint was measured by the method, and as `read_checkpoint`.
    """
    number, method, points = best_checkpoint(run, name), method_named(name), run.config.evaluation
    reporter.message(f"checkpoint {number} is the best by {name}")
    if "seed" in declared(method.options):
        side = Profile(game, read_checkpoint(run, number, partial(stored_average, game, run.config)))
        options: dict[str, Any] = {**given_to(method, points), "seed": points.seed + 1}
        reporter.phase(EVALUATING)
        record = measure(name, side, **options)
        reporter.message(f"on other deals than it was chosen by: {record_text(record, f'seed {points.seed + 1}')}")
    return number
