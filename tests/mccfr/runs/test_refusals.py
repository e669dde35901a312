"""What neither an algorithm nor a pool can train: each refusal is a sentence that names the key and what is allowed."""

import pytest
from refusals import refused

from mccfr.config.file import config_from
from mccfr.runs.session.plan import make_plan
from mccfr.runs.session.pools import training_problem

RESIDENT = {"resident": "1MB"}
REFUSED = [
    ("run.strata = 2", "with solver.algorithm = 'cfr'", {"run": {"strata": 2}, "solver": {"algorithm": "cfr"}}),
    ("run.blocks = 2", "unless tables.resident is set", {"run": {"strata": 4, "blocks": 2}}),
    ("run.cycle_iterations = 9", "unless tables.resident is set", {"run": {"cycle_iterations": 9}}),
    ("tables.resident = '1MB'", "unless run.strata shares the tables out", {"tables": RESIDENT}),
    ("run.strata = 1", "at least 2 with tables.resident", {"run": {"strata": 1}, "tables": RESIDENT}),
]


@pytest.mark.parametrize(("given", "allowed", "document"), REFUSED)
def test_what_cannot_be_trained_is_read_and_refused_in_a_sentence(given, allowed, document, tmp_path):
    config = config_from({"game": {"name": "leduc"}, **document}, "test")
    found = training_problem(config)
    assert found.startswith(f"{given} is not allowed: it must be ") and allowed in found
    refused("is not allowed", make_plan, config, tmp_path)
