"""Reports: one self-contained file with the figures of queries.

Shows:

* Distances between averages, by street and depth, equal those of a loop over infosets
  (test_distances_are_means_by_weight_of_each_street_and_depth)
* Experiments compare variants by the ratios of runs with the same seed
  (test_pairs_are_ratios_to_the_first_variant_seed_by_seed)
"""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from commands import call
from places import ROOT, RUNS
from refusals import refusals, refused
from strategies import partly_reached_strategy

from abstraction.cards import combo_table
from mccfr.cards.grid import make_grid
from mccfr.config.game_tables import HoldemGame, HoldemSubgame, LeducGame, MatrixGame, Menu, PokerGame
from mccfr.config.run_tables import AbstractionConfig
from mccfr.config.toml_files import config_from
from mccfr.evaluation.curve_svg import curve_svg
from mccfr.games.registry import build_game
from mccfr.policy import Profile
from mccfr.policy.query import query
from mccfr.report import document, write_report
from mccfr.report.average_differences import disagreements
from mccfr.report.decisions import SCALE, decision_views, hand_lists, places
from mccfr.report.document import script_json
from mccfr.report.report_boards import shown_cards
from mccfr.runs.directory.run import EVALUATIONS, create_run
from mccfr.runs.reporter import Silent
from mccfr.runs.results.average_strategies import checkpoint_average
from mccfr.runs.results.checkpoints import find_checkpoint
from mccfr.runs.session.run_plan import planned_layout
from mccfr.runs.session.training_session import train
from mccfr.tables.strategy import Strategy, uniform_strategy

VOID = {"meta", "link", "img", "br", "hr", "input", "rect", "path", "polyline"}


class Page(HTMLParser):
    """Elements of a page, checked to be closed in order; `text` by id of the element around it."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.text = [], [], {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data):
        if self.open:
            key = self.open[-1][1].get("id") or self.open[-1][0]
            self.text[key] = self.text.get(key, "") + data


def data_of(path):
    return json.loads(Page(path.read_text()).text["data"])


def solved(directory, game, **tables):
    """A run in this process; its files are relative to the shipped configs."""
    config = config_from({"game": game, "run": {"workers": 0, "iterations": 300}, **tables}, "the test")
    built = build_game(config.game, RUNS)
    run = create_run(config, RUNS, directory, planned_layout(config, built))
    train(run, built, Silent())
    return run


@pytest.fixture(scope="module")
def kuhn(tmp_path_factory):
    return solved(
        tmp_path_factory.mktemp("runs") / "<kuhn> & co", {"name": "kuhn"}, evaluation={"at_iterations": [1, 30]}
    )


@pytest.fixture(scope="module")
def river(tmp_path_factory):
    return solved(tmp_path_factory.mktemp("runs") / "river", {"name": "holdem-subgame", "file": "games/river.txt"})


def check_against_query(data, source):
    """Every number of a report is the query's, to the digits it has."""
    game = source.game
    for key, view in data["views"].items():
        board = data["boards"][view["board"]]
        found = query(source, view["line"], board=board["name"] if board["name"] else None)
        assert (found["line"], found["player"]) == (view["line"], view["player"])
        assert found["pot_chips"] == view["pot"]
        assert [(a["action"], a["to_chips"]) for a in found["actions"]] == [
            (a["action"], a["to"]) for a in view["actions"]
        ]
        hands = [data["names"][hand] for hand in data["hands"][view["board"]][view["player"]]]
        assert hands == list(found["hands"])
        shares = np.array(view["p"]).reshape(len(hands), -1) / data["scale"]
        assert np.abs(shares - np.array(list(found["hands"].values()))).max() <= 0.5 / SCALE + 1e-12
        assert [hands[place] for place in view["u"]] == found["unreached"]
        children = game.tree.children(int(key.split(".")[0]))
        assert all(action["next"] in (-1, child) for action, child in zip(view["actions"], children, strict=True))


def test_page_of_a_river_endgame_has_the_query_s_numbers(river, tmp_path):
    out = tmp_path / "river.html"
    counts = write_report(river.directory, out)
    data = data_of(out)
    game = river.build_game()
    assert counts["decisions"] == len(data["views"]) == game.counts()["decision_nodes"] and counts["complete"]
    assert counts["bytes"] == out.stat().st_size < 2_000_000
    strategy = checkpoint_average(game, river.config, find_checkpoint(river, None))
    check_against_query(data, Profile(game, strategy))
    assert data["boards"] == [{"name": "KdJh8s5c2h", "street": "river", "parent": -1}] and data["first"] == "0.0"
    assert set(data["above"]) == set(data["views"]) - {"0.0"}


def test_page_stands_alone_and_escapes_what_it_is_given(kuhn, tmp_path):
    out = tmp_path / "kuhn.html"
    write_report(kuhn.directory, out)
    text = out.read_text()
    page = Page(text)
    assert not page.open
    for tag, attrs in page.seen:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base"}
        assert not {"src", "href", "action", "srcset", "data"} & set(attrs), (tag, attrs)
    assert re.findall(r"(?:https?:)?//[\w.]+", text) == []
    assert "@import" not in text and "url(" not in text and "innerHTML" not in text
    assert "default-src 'none'" in text
    assert "<kuhn>" not in text and page.text["title"].startswith("kuhn: <kuhn> & co")
    assert "#data" not in text and page.text["data"].count("<") == 0
    assert script_json("</script><!-- & \u2028") == '"\\u003c/script\\u003e\\u003c!-- \\u0026 \\u2028"'


def test_a_policy_is_shown_as_its_run_is(kuhn, tmp_path, capsys):
    write_report(kuhn.directory, tmp_path / "run.html")
    assert call(capsys, "export", kuhn.directory, tmp_path / "<policy>").status == 0
    assert call(capsys, "report", tmp_path / "<policy>", tmp_path / "policy.html").status == 0
    of_run, of_policy = data_of(tmp_path / "run.html"), data_of(tmp_path / "policy.html")
    assert of_policy["boards"] == of_run["boards"] and of_policy["views"].keys() == of_run["views"].keys()
    text = (tmp_path / "policy.html").read_text()
    assert not Page(text).open and "<policy>" not in text and "Configuration" not in text
    assert f"300 iterations, {kuhn.read(EVALUATIONS)[-1]['nodes_touched']:,} nodes touched" in text
    err = call(capsys, "report", tmp_path / "<policy>", tmp_path / "other.html", "--checkpoint", 1).err
    assert "was exported from one checkpoint: leave --checkpoint out" in err


def test_facts_and_curve_are_the_run_s(kuhn, tmp_path):
    out = tmp_path / "kuhn.html"
    write_report(kuhn.directory, out)
    text = out.read_text()
    records = kuhn.read(EVALUATIONS)
    assert [record["iterations"] for record in records] == [1, 30, 300]
    for fact in (kuhn.manifest["identity"], "external-sampling", f"{records[-1]['exploitability_chips']:.6g} chips"):
        assert fact in text
    assert text.count("<circle") == 3 and f"{records[1]['exploitability_chips']:.6g}</title>" in text
    assert "name = &quot;kuhn&quot;" in text
    early = kuhn.read(EVALUATIONS)[:1]
    assert curve_svg([], "iterations") == "" and curve_svg(early, "iterations").count("<circle") == 1


def test_turn_endgames_and_small_games_equal_queries_on_every_board_shown():
    for config, wanted, boards, streets in (
        (HoldemSubgame(file="games/turn.txt"), ["2d", "Qd9c6c3hAs"], 3, ["turn", "river", "river"]),
        (PokerGame(ranks=3, suits=2, antes=(1, 1), stack=3), [], 4, ["street 1", "street 2", "street 2", "street 2"]),
    ):
        game = build_game(config, RUNS)
        source = Profile(game, partly_reached_strategy(game))
        cards = shown_cards(game, wanted, 3)
        assert [board.street_name for board in cards.boards] == streets and len(cards.boards) == boards
        views, cut = decision_views(game, source.strategy, cards, 400_000)
        assert cut == bool(wanted)  # the turn has more than fits
        data = {"scale": SCALE, "names": list(cards.names), "views": views, "hands": hand_lists(cards)}
        data["boards"] = [{"name": board.name} for board in cards.boards]
        check_against_query(data, source)
        assert {view["board"] for view in views.values()} == set(range(boards))


def test_whole_holdem_shows_the_boards_it_is_given(slot_abstractions, tables_read_once):
    config = HoldemGame(menu=Menu(first=("1p", "allin"), later=("allin",), max_bets=2))
    game = build_game(config, ROOT, AbstractionConfig(path=str(slot_abstractions[0])))
    source = Profile(game, partly_reached_strategy(game))
    assert [board.name for board in shown_cards(game, [], 6).boards] == [""]
    cards = shown_cards(game, ["Qs7h2dKc"], 6)
    assert [(board.name, board.parent) for board in cards.boards] == [("", -1), ("Qs7h2d", 0), ("Qs7h2dKc", 1)]
    views, cut = decision_views(game, source.strategy, cards, 3_000_000)
    assert {view["board"] for view in views.values()} == {0, 1, 2} and not cut
    preflop = query(source, "c", hand="AsKs")
    view = next(view for view in views.values() if view["line"] == "c")
    place, count = cards.names.index("AsKs"), len(view["actions"])
    shares = [share / SCALE for share in view["p"][place * count : (place + 1) * count]]
    assert shares == pytest.approx([action["probability"] for action in preflop["actions"]], abs=1 / SCALE)
    later = {key: view for key, view in views.items() if view["board"]}
    data = {"scale": SCALE, "names": list(cards.names), "views": later, "hands": hand_lists(cards)}
    check_against_query(data | {"boards": [{"name": board.name} for board in cards.boards]}, source)
    refused("boards of holdem have 0, 3, 4, 5", shown_cards, game, ["Qs7h"], 6)


def test_reach_is_the_range_times_what_was_played():
    game = build_game(HoldemSubgame(file="games/turn.txt"), RUNS)
    source = Profile(game, partly_reached_strategy(game))
    cards = shown_cards(game, ["2d"], 1)
    views, _ = decision_views(game, source.strategy, cards, 3_000_000)
    key, view = next((k, v) for k, v in views.items() if v["line"] == "cc/r1800" and v["board"] == 1)
    assert view["player"] == 1 and key.endswith(".1")
    hands = hand_lists(cards)[1][1]
    checked = query(source, "c", board="Qd9c6c3h")
    column = [action["action"] for action in checked["actions"]].index("c")
    for place in (0, 7, len(hands) - 1):
        expected = game.cards.reach[1, hands[place]] * checked["hands"][cards.names[hands[place]]][column]
        assert view["r"][place] == pytest.approx(expected / game.cards.reach[1].max(), rel=6e-3)
    masses = [place.mass for place, _ in zip(places(game, source.strategy, cards), range(40), strict=False)]
    assert masses == sorted(masses, reverse=True)


def test_grid_is_the_usual_square():
    table = combo_table()
    grid = make_grid(table, [""] * len(table))
    assert (grid.rows, grid.columns, grid.label[0], grid.label[1], grid.label[13]) == (13, 13, "AA", "AKs", "AKo")
    sizes = np.bincount(grid.cell, minlength=169)
    assert {(label[2:], int(size)) for label, size in zip(grid.label, sizes, strict=True)} == {
        ("", 6),
        ("s", 4),
        ("o", 12),
    }
    assert grid.label[grid.cell[0]] == "22" and grid.place[168] == (12, 12)


def test_command_and_refusals(capsys, tmp_path, kuhn):
    out = tmp_path / "page.html"
    assert call(capsys, "report", kuhn.directory, out).status == 0
    small = ("--megabytes", "0.01", "--boards", "1")
    code, _, err = call(capsys, "report", kuhn.directory, out, *small)  # replaces the earlier one
    assert code == 0 and "wrote" in err and out.exists()
    assert call(capsys, "report", tmp_path, tmp_path / "new.html").status == 2
    assert call(capsys, "report", kuhn.directory, tmp_path / "new.html", "--checkpoint", "9").status == 2
    assert call(capsys, "report", kuhn.directory, tmp_path / "new.html", "--board", "AsKs").status == 2
    assert not (tmp_path / "new.html").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".tmp")]


BIDS = MatrixGame(payoffs=((1, -1), (-1, 1)))
test_no_cards = refusals(("matrix has no cards beside its tree", lambda: shown_cards(build_game(BIDS, ROOT), [], 1)))


def test_curves_have_one_opponent():
    """Draw figures against uniform play and against a checkpoint as separate lines."""
    nothing = {"exploitability_mbb": None, "exploitability_chips": None}
    records = [
        {**nothing, "nodes_touched": nodes, "value_chips": value, "against": against}
        for nodes, value, against in (
            (1e6, 700.0, "uniform"),
            (1e7, 90.0, "checkpoint 1"),
            (1e8, 100.0, "checkpoint 1"),
        )
    ]
    drawn = curve_svg(records, "nodes_touched")
    assert drawn.count("<circle") == 2 and "won from checkpoint 1" in drawn and ": 700" not in drawn


def evaluated(**fields):
    """A line of evaluations.jsonl."""
    empty = {"exploitability_chips": None, "exploitability_mbb": None, "ci95_chips": None, "against": None}
    return {"iterations": 7, "nodes_touched": 1000, "value_chips": 2.5, **empty, **fields}


def test_what_is_won_from_another_strategy_is_named_and_not_called_convergence():
    records = [
        evaluated(against="uniform", ci95_chips=[1.0, 4.0]),
        evaluated(against="<b>1", ci95_chips=[2.0, 3.0], nodes_touched=5000),
    ]
    shown = document._curve(records, "nodes_touched")
    assert "<h2>Won from &lt;b&gt;1</h2>" in shown and "won from &lt;b&gt;1 (chips a hand)" in shown
    assert "neither exploitability nor convergence" in shown and "<h2>Convergence" not in shown
    table = document._evaluations(records)
    heads = re.findall("<th>(.*?)</th>", table)
    assert heads == ["iterations", "nodes touched", "won (chips a hand)", "95 %", "against"]
    assert re.findall("<td>(.*?)</td>", table)[:5] == ["7", "1,000", "2.5", "1 to 4", "uniform"]
    exact = [evaluated(method="exact", bound="exact", exploitability_chips=0.5)]
    assert document._curve(exact, "iterations").startswith("<h2>Exploitability</h2>")
    heads = re.findall("<th>(.*?)</th>", document._evaluations(exact))
    assert heads == ["iterations", "nodes touched", "exploitability (chips)", "value (chips)"]
    assert "Nothing has been evaluated" in document._curve([], "iterations")


def test_of_networks_that_no_table_holds_all_but_their_strategy_is_shown(tmp_path, monkeypatch):
    """Skip Leduc's strategy if it is declared too large, and leave no script without its data."""
    options = {"traversals": 5, "steps": 2, "batch": 8, "horizon": 3, "averages": ["sd", "network"]}
    solver, game = {"algorithm": "deep-cfr", **options}, {"name": "leduc", "merge_suits": True}
    run = solved(tmp_path / "run", game, solver=solver, run={"workers": 0, "iterations": 3})
    monkeypatch.setattr(document, "is_unlisted", lambda game: True)
    counts = write_report(run.directory, tmp_path / "out.html")
    assert counts["decisions"] == 0 and counts["complete"]
    text = (tmp_path / "out.html").read_text()
    page = Page(text)
    assert not page.open and "script" not in {tag for tag, _ in page.seen}
    assert "over 288 infosets" in text and "How far network is from sd" in text
    with pytest.raises(ValueError, match="no board can be shown: leave out --board"):
        write_report(run.directory, tmp_path / "other.html", boards=["Ks"])
    assert not (tmp_path / "other.html").exists()


# --- How far averages are apart, by street and depth, against a loop over infosets ---


def test_distances_are_means_by_weight_of_each_street_and_depth():
    game = build_game(LeducGame(merge_suits=True), None, None)
    tree, random, even = game.tree, np.random.default_rng(0), uniform_strategy(game)
    weights = tuple(random.uniform(size=weight.shape) for weight in even.weight)
    moved = []
    for block, table in enumerate(even.probability):
        changed = np.array(table)
        for node in tree.decisions[tree.arrays.block[tree.decisions] == block].tolist():
            slot = int(tree.arrays.slot[node])
            step = random.uniform(0, 0.3, len(changed))
            changed[:, slot] += step
            changed[:, slot + 1] -= step
        moved.append(changed)
    found = disagreements(game, [(Strategy(even.probability, weights), Strategy(tuple(moved), even.weight))])

    def where(node):
        return int(tree.arrays.block[node]) // 2, len(tree.path(node)) - 1

    assert [(row.street, row.depth) for row in found] == sorted({where(node) for node in tree.decisions.tolist()})
    for row in found:
        gaps, mass, count = 0.0, 0.0, 0
        for node in tree.decisions.tolist():
            if where(node) == (row.street, row.depth):
                block, slot = int(tree.arrays.block[node]), int(tree.arrays.slot[node])
                for bucket, weight in enumerate(weights[block][:, tree.arrays.row[node]]):
                    gaps += weight * abs(moved[block][bucket, slot] - even.probability[block][bucket, slot])
                    mass, count = mass + weight, count + 1
        assert row.mean == pytest.approx(gaps / mass, rel=1e-12)
        assert row.infosets == count
