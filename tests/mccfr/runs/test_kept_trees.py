"""What a run keeps from one evaluation to the next."""

from types import SimpleNamespace

from sessions import make

from mccfr.evaluation import exact
from mccfr.evaluation.methods import measure, method_named
from mccfr.policy.profile import Profile
from mccfr.runs.results.evaluator import Evaluator
from mccfr.tables.strategy import uniform_strategy


def test_a_run_prepares_its_game_once(tmp_path, monkeypatch):
    run = make(tmp_path / "run", game="kuhn")
    game, made = run.build_game(), []

    def counted(prepared, whole=exact.public_tree):
        made.append(prepared)
        return whole(prepared)

    monkeypatch.setattr(exact, "public_tree", counted)
    evaluator, strategy = Evaluator(run, game), uniform_strategy(game)
    assert made == []  # a run that never evaluates prepares nothing
    records = [record for _ in range(3) for record in evaluator.evaluate(strategy)]
    assert made == [game]
    alone = measure("exact", Profile(game, strategy))
    for record in records:
        assert {**record, "seconds": 0} == {**alone, "seconds": 0}


def test_nothing_is_kept_that_depends_on_strategies_or_takes_much_memory(tmp_path):
    method = method_named("exact")
    assert method.prepared(make(tmp_path / "kuhn", game="kuhn").build_game()) is not None
    assert method.prepared(make(tmp_path / "leduc").build_game()) is None
    listed = SimpleNamespace(cards=SimpleNamespace(dealt=True, can_list=True, listing_bytes=1))
    assert method.prepared(listed) is None
    without_cards = SimpleNamespace(cards=SimpleNamespace(dealt=False, listing_bytes=0))
    assert method.prepared(without_cards) is None
