"""Trained responses in games of three or more players, against exact evaluation of a small game.

Shows:

* A trained response gains 95 to 100 % of a best response's gain
  (test_a_trained_response_gains_nearly_as_much_as_a_best_response)
"""

import pytest
from harness import KUHN
from public_seats import UNEVEN, on_listed, public_and_listed
from refusals import refused

from mccfr.evaluation import trained_response as module
from mccfr.evaluation.exact import evaluate_exact
from mccfr.evaluation.methods import registry
from mccfr.evaluation.samples import Effort
from mccfr.evaluation.trained_response import trained_response
from mccfr.policy.strategy_profile import Profile
from mccfr.tables.strategy import uniform_strategy

PUBLIC, LISTED = public_and_listed(UNEVEN, 3)
UNIFORM = Profile(PUBLIC, uniform_strategy(PUBLIC))


def test_a_trained_response_gains_nearly_as_much_as_a_best_response():
    exact = evaluate_exact(LISTED, on_listed(PUBLIC, LISTED, UNIFORM.strategy))
    found = trained_response(UNIFORM, 3_000_000, 60_000, seed=1)
    for player, (value, gain) in enumerate(zip(found.values, found.gains, strict=True)):
        best, most = exact.best_response_chips[player], exact.gains_chips[player]
        assert value.mean == pytest.approx(best - most, abs=2 * value.within)
        assert 0.95 * most - 2 * gain.within < gain.mean < most + 2 * gain.within
        assert gain.within < 0.1 * most


def test_the_record_and_its_text(monkeypatch):
    monkeypatch.setattr(module, "SAMPLE_DEALS", 64)
    record = registry.measure("trained-response", UNIFORM, response_nodes=20_000, deals=512)
    assert record["deals"] == 512 and len(record["gains_chips"]) == 3 and record["bound"] == "lower"
    text = registry.record_text(record, "1 s")
    assert text.startswith("in chips a game") and f"third player: value {record['values_chips'][2]:.4g} (" in text
    text = registry.record_text({**record, "big_blind_chips": 0.5, "gains_chips": [0.25, 0.125, 1.0]}, "1 s")
    assert text.startswith("in mbb/g") and "; second player: value " in text and " a response gains 250 (" in text
    assert "more --response-nodes" not in text
    assert "more --response-nodes" in registry.record_text({**record, "gains_chips": [0.25, 0.125, -1.0]}, "1 s")
    assert registry.method_for(PUBLIC, "auto").name == "trained-response"
    again = registry.measure("trained-response", UNIFORM, response_nodes=20_000, deals=512, workers=2)
    assert again["gains_chips"] == record["gains_chips"]


def test_refusals():
    refused("use the method trained-response", registry.check_method, PUBLIC, "exact")
    refused("is for three and more players", registry.check_method, KUHN, "trained-response")
    refused("deals no cards outside", registry.check_method, LISTED, "trained-response")
    refused("at least 2 are needed", trained_response, UNIFORM, 1_000, 10, 0, Effort())
