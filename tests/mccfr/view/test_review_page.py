"""Reviews on the page: decisions sorted by cost.

Shows:

* The page shows a review's decisions, the most costly first (test_decisions_come_sorted_and_filtered)
* Decisions without a cost come last, with the reason (test_decisions_without_a_cost_come_last)
* A review of another policy or a damaged review is refused
  (test_damaged_reviews_and_those_of_other_policies_are_refused)
"""

import json

import pytest
from page_parts import write_review
from pages_server import ask, serving
from random_policy import policy

from mccfr.matches.review.hand_review import IGNORED, NO_COST
from mccfr.view import Spots, open_strategies
from mccfr.view.review_page import Reviews


def test_decisions_come_sorted_and_filtered(tmp_path):
    with serving(Spots(policy(), "mine"), review=write_review(tmp_path / "kept")) as server:
        found = json.loads(ask(server, "/api/review")[2])
        costs = [row["shown_bb"] for row in found["rows"]]  # the interval of -0.2 contains 0; the total has it
        assert costs == [3.1, 0.4, 0, 0] and found["cost_bb"] == pytest.approx(3.3) and found["hands"] == 2
        assert [row["did"] for row in found["rows"]] == ["fold", "call 1 BB", "call 0.5 BB", "fold"]
        assert found["streets"] == ["preflop", "river"] and found["players"] == ["<i>Bob", "Ada"]
        only = json.loads(ask(server, "/api/review?street=preflop&player=Ada")[2])
        assert [row["place"] for row in only["rows"]] == [1, 3] and only["cost_bb"] == 0.4
        assert json.loads(ask(server, "/api/game")[2])["reviewed"] is True
    with serving(Spots(policy(), "mine")) as server:
        status, _, body = ask(server, "/api/review")
        assert status == 400 and "no review is shown" in json.loads(body)["error"]


def test_decisions_without_a_cost_come_last(tmp_path):
    found = Reviews(write_review(tmp_path / "kept"), Spots(policy(), "mine")).decisions()
    assert [row["hand"] for row in found["rows"]] == ["AdAs", "7h2c", "KdKs", "8h3c"]
    assert found["rows"][-1]["source"].endswith(f" (hand for policy, in BB). {NO_COST}.")
    assert found["rows"][-1]["shares"] == "fold 25%"
    assert NO_COST in found["note"] and IGNORED in found["note"]


def test_damaged_reviews_and_those_of_other_policies_are_refused(tmp_path):
    kept, spots = write_review(tmp_path / "kept"), Spots(policy(), "mine")
    text = kept.read_text()
    for changed, said in (
        (text[1:], "holds no review"),
        (text.replace('{"mine": "', '{"mine": "0'), "a review by another policy"),
        (text.replace('"unknown"', '"known"'), "a line that is no reviewed hand"),
    ):
        kept.write_text(changed)
        with pytest.raises(ValueError, match=said):
            Reviews(kept, spots)
    with pytest.raises(ValueError, match="give a policy or a run"):
        open_strategies(None, review=kept)
