"""Runs of full-width CFR and public chance sampling have the same bits after a stop and a resume."""

import pytest
from places import RUNS
from sessions import NO_EVALUATION, assert_same, go, make

from mccfr.runs.directory.verification import problems_of

GAMES = {
    "leduc": {"name": "leduc", "merge_suits": True},
    "river": {"name": "holdem-subgame", "file": str(RUNS / "games/river.txt")},
}
CFR, PUBLIC = {"algorithm": "cfr"}, {"algorithm": "public-chance-sampling"}
SOLVERS = {
    "dcfr": {**CFR, "variant": "dcfr"},
    "optimistic float32": {**CFR, "variant": "optimistic-lcfr", "dtype": "float32"},
    "simultaneous": {**CFR, "variant": "cfr+", "updates": "simultaneous"},
    "public chance": PUBLIC,
    "public chance dcfr": {**PUBLIC, "discount": "dcfr", "period_nodes": 1000},
}
HISTORIES = {kind: {**CFR, "pruning": kind, "updates": "simultaneous"} for kind in ("partial", "regret-based")}
HISTORIES["zero reach"] = {**CFR, "best_response": "zero-reach", "dtype": "float32"}
CASES = [(game, name, 30) for game in ("leduc", "river") for name in SOLVERS]
CASES += [("leduc", name, 120) for name in HISTORIES]


@pytest.mark.parametrize(("game", "name", "iterations"), CASES)
def test_a_stopped_run_continues_with_the_same_bits(tmp_path, game, name, iterations):
    solver = {**SOLVERS, **HISTORIES}[name]
    whole, parts = (make(tmp_path / run, solver, GAMES[game], evaluation=NO_EVALUATION) for run in ("whole", "parts"))
    go(whole, iterations=iterations)
    for last in (iterations * 2 // 5, iterations):
        go(parts, iterations=last)
    assert_same(whole, parts)
    assert problems_of(parts.directory) == []
