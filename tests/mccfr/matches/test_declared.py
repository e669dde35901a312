"""Pre-registered matches and evaluations: seeds from a digest, recorded results, refused input.

Shows:

* A pre-registered match draws its hands from a digest of the declaration and records its result
  (test_a_declared_match_leaves_its_verdict)
* The same holds for bots and evaluations (test_a_bot_is_declared, test_an_evaluation_is_declared)
* A stopped match records that it has no result, with the reason (test_what_was_stopped_is_told_too)
"""

import json
from random import Random

import pytest
from acpc import guest, plan
from commands import answer, call
from policies import write_random
from refusals import refusals

from mccfr.config.game_tables import KuhnGame, LeducGame
from mccfr.matches import preregistration
from mccfr.matches.bot_sessions import declared_bot
from mccfr.matches.preregistration import Declaration, Declare, declare_of
from mccfr.matches.programs import PROGRAMS


@pytest.fixture
def kuhn(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_random(tmp_path / "kuhn", KuhnGame(), seed=1).name


def lines(path):
    head, *found = path.read_text().splitlines()
    assert head.startswith("# mccfr declarations")
    return [json.loads(line) for line in found]


def test_a_declared_match_leaves_its_verdict(kuhn, tmp_path, capsys):
    """Draw the same hands for the same declaration, others for another; leave other files alone."""
    path, command = tmp_path / "said", ("match", kuhn, "always-call", "--hands", 200, "--declare", "said")
    one = answer(capsys, *command, "--expect", "chips low > -5000")
    again = answer(capsys, *command, "--expect", "chips low > -5000")
    other = answer(capsys, *command, "--expect", "aivat high < -4999.5")
    assert one["declared"]["held"] and not other["declared"]["held"]
    assert (one["seed"], one["mean_chips"]) == (again["seed"], again["mean_chips"]) and one["seed"] != other["seed"]
    said = lines(path)
    assert ["declared" in line for line in said] == [True, False, False, True, False]
    assert [line.get("held") for line in said] == [None, True, True, None, False]
    assert one["seed"] == int(said[0]["declared"][:15], 16) == int(one["declared"]["digest"][:15], 16)
    assert {"players", "hands", "version", "names", "expect", "at"} < set(said[0])
    text = call(capsys, *command, "--expect", "chips low > 5000")
    assert "chips low > 5000 does NOT hold" in text.out and f"declared {lines(path)[-1]['verdict']}" in text.err
    (tmp_path / "letter").write_text("dear all")
    assert "another name" in call(capsys, *command[:-1], "letter", "--expect", "chips low > 0").err
    assert (tmp_path / "letter").read_text() == "dear all"


def test_all_that_a_result_follows_from_is_in_the_digest(tmp_path, monkeypatch):
    """Version, policies, hands, expectation: each changes it."""

    def digest(what, expect="chips low > 0"):
        return Declaration(Declare(tmp_path / "said", expect), what, ("chips",)).digest

    found = [digest({"a": 1}), digest({"a": 2}), digest({"a": 1}, "chips low > 1")]
    monkeypatch.setattr(preregistration, "__version__", "0")
    assert len({*found, digest({"a": 1})}) == 4 and len(lines(tmp_path / "said")) == 4


def test_a_bot_is_declared(tmp_path):
    """It draws by the digest; too few hands are no verdict."""
    bot, ends = guest(PROGRAMS["random"], plan()), {"mean_mbb": -3.0, "ci95_mbb": [-5.0, -1.0]}
    with declared_bot(Declare(tmp_path / "said", "chips high < 0"), bot, {"hands": 2}) as record:
        bot.player.deal(1, "AsKd", 0)
        drawn = bot.player.random.random()
        assert "declared" in lines(tmp_path / "said")[0]
        record.update(ends)
    assert record["declared"]["held"] and lines(tmp_path / "said")[-1]["held"]
    assert drawn == Random(f"{int(record['declared']['digest'][:15], 16)} 0").random()
    with (
        pytest.raises(ValueError, match="too few hands"),
        declared_bot(Declare(tmp_path / "said", "chips high < 0"), bot, {}) as record,
    ):
        record.update(mean_mbb=None, ci95_mbb=None)
    assert lines(tmp_path / "said")[-1]["held"] is None
    with declared_bot(None, bot, {}) as record:
        assert record == {}


def test_what_was_stopped_is_told_too(tmp_path):
    said = Declaration(Declare(tmp_path / "said", "chips mean > 1"), {}, ("chips",))
    with pytest.raises(RuntimeError), said.ended():
        raise RuntimeError("the line was cut")
    assert (lines(tmp_path / "said")[-1]["held"], lines(tmp_path / "said")[-1]["why"]) == (None, "the line was cut")
    with pytest.raises(ValueError, match="no figure chips"):
        said.judged({})
    assert said.judged({"chips": (1.0, (0.5, 1.5))})["declared"]["held"] is False
    assert [line.get("held") for line in lines(tmp_path / "said")[1:]] == [None, None, False]


def test_an_evaluation_is_declared(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_random(tmp_path / "leduc", LeducGame(), seed=1)
    command = ("evaluate", "leduc", "--method", "lbr", "--hands", 100, "--declare", "said", "--expect")
    found = answer(capsys, *command, "exploitability low > 100000")
    first = lines(tmp_path / "said")[0]
    assert found["declared"]["held"] is False and found["seed"] == int(first["declared"][:15], 16)
    assert first["method"] == "lbr" and first["options"]["hands"] == "100"
    assert answer(capsys, *command, "value mean < 100000")["declared"]["held"]


test_refusals = refusals(
    ("go together", lambda tmp_path: declare_of(tmp_path, None, None)),
    ("leave --seed out", lambda tmp_path: declare_of(tmp_path, "chips low > 0", 3)),
    ("write FIGURE", lambda tmp_path: Declaration(Declare(tmp_path / "x", "aivat low > 0"), {}, ("chips",))),
    ("mean, low or high", lambda tmp_path: Declaration(Declare(tmp_path / "x", "chips low >= 0"), {}, ("chips",))),
)
