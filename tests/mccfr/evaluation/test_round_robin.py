"""Everybody against everybody: each match is what `match` says of it, the table follows from them, and it goes on."""

import json
from itertools import combinations

import numpy as np
import pytest
from commands import call
from policies import write_random

from mccfr.config.games import KuhnGame
from mccfr.evaluation.match import match
from mccfr.intervals import ratio95
from mccfr.runs.results import round_robin
from mccfr.runs.results.players import open_player
from mccfr.runs.results.round_robin import play_round_robin


@pytest.fixture
def names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        write_random(tmp_path / f"random{number}", KuhnGame(), seed=number)
    return ["random1", "random2", "always-call"]


def test_everybody_meets_everybody_on_the_same_deals(names, capsys):
    found = json.loads(call(capsys, "rank", *names, "--hands", 200, "--seed", 3, "--json").out)
    assert [(each["a"], each["b"]) for each in found["matches"]] == list(combinations(names, 2))
    for each in found["matches"]:
        alone = json.loads(call(capsys, "match", each["a"], each["b"], "--hands", 200, "--seed", 3, "--json").out)
        assert {**alone, "seconds": 0} == {**each, "seconds": 0}
    means = [player["mean_chips"] for player in found["players"]]
    assert means == sorted(means, reverse=True) and sum(means) == pytest.approx(0, abs=1e-12)
    won = {(each["a"], each["b"]): each["aivat_mean_chips"] for each in found["matches"]}
    mean = {player["name"]: player["mean_chips"] for player in found["players"]}
    assert mean["random1"] == pytest.approx((won["random1", "random2"] + won["random1", "always-call"]) / 2)
    text = call(capsys, "rank", *names, "--hands", 200, "--seed", 3).out
    best = found["players"][0]
    assert text.splitlines()[1].startswith(f"1 {best['name']}  ") and f"{best['mean_chips']:+.4g}" in text


def test_the_interval_of_a_mean_is_over_deals_that_all_matches_share(names):
    """Shares of the same deals are one unit: intervals of matches put together as if they were independent differ."""
    opened = [open_player(name).contender for name in names]
    units = np.array([match((opened[0], other), 200, 1).pairs[:, 2] for other in opened[1:]]).mean(axis=0)
    mean, interval = ratio95(units, np.ones(len(units)))
    player = next(each for each in play_round_robin(names, 200, 1)["players"] if each["name"] == names[0])
    assert player["mean_chips"] == pytest.approx(mean) and player["ci95_chips"] == pytest.approx(interval)


def test_it_goes_on_where_it_was_stopped_and_further_names_cost_their_own_matches(names, capsys, tmp_path, monkeypatch):
    whole = play_round_robin(names, 200)
    kept = tmp_path / "kept"
    play_round_robin(names[:2], 200, keep=kept)
    played, play = [], round_robin.play_opened

    def counted(pair, *args, **options):
        before = options["effort"].keep.exists()
        played.append((pair[0].contender.name, pair[1].contender.name, before))
        return play(pair, *args, **options)

    monkeypatch.setattr(round_robin, "play_opened", counted)
    again = play_round_robin(names, 200, keep=kept)
    assert [before for _, _, before in played] == [True, False, False] and len(list(kept.iterdir())) == 3
    assert {**again, "matches": 0, "seconds": 0} == {**whole, "matches": 0, "seconds": 0}
    for wrong, words in (
        (["random1"], "at least two names"),
        (["random1", "random1"], "each of them once"),
        (["random1", "always-call", "random"], "always-call and random are programs, which name no game"),
        (["random1", "nobody"], "nobody is neither a policy"),
    ):
        refused = call(capsys, "rank", *wrong)
        assert refused.status == 2 and words in refused.err
