"""Reviews on the page: decisions sorted by cost.

Shows:

* The page shows a review's decisions, the most costly first (test_decisions_come_sorted_and_filtered)
* A review of another policy or a damaged review is refused (test_what_is_no_review_of_this_policy_is_refused)
"""

import json

import pytest
from page_parts import write_review
from pages_server import ask, serving
from random_policy import policy

from mccfr.view import Spots, open_strategies
from mccfr.view.review_page import Reviews


def test_decisions_come_sorted_and_filtered(tmp_path):
    with serving(Spots(policy(), "mine"), review=write_review(tmp_path / "kept")) as served:
        found = json.loads(ask(served, "/api/review")[2])
        costs = [row["shown_bb"] for row in found["rows"]]  # the interval of -0.2 contains 0; the total has it
        assert costs == [3.1, 0.4, 0] and found["cost_bb"] == pytest.approx(3.3) and found["hands"] == 2
        assert [row["did"] for row in found["rows"]] == ["fold", "call 1 BB", "call 0.5 BB"]
        assert found["streets"] == ["preflop", "river"] and found["players"] == ["<i>Bob", "Ada"]
        only = json.loads(ask(served, "/api/review?street=preflop&player=Ada")[2])
        assert [row["place"] for row in only["rows"]] == [1] and only["cost_bb"] == 0.4
        assert json.loads(ask(served, "/api/game")[2])["reviewed"] is True
    with serving(Spots(policy(), "mine")) as served:
        status, _, body = ask(served, "/api/review")
        assert status == 400 and "no review is shown" in json.loads(body)["error"]


def test_what_is_no_review_of_this_policy_is_refused(tmp_path):
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
