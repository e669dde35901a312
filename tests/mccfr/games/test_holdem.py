"""Full hold'em: dealing buckets, a run, its policy and queries, refused input.

Shows:

* Readers in Python, C and JavaScript find the probabilities that `query` prints
  (test_the_documented_reader_finds_the_probabilities_of_query, test_readers_pass_the_vectors)
* Without its abstraction a run works with a copy, and refuses others
  (test_a_run_without_its_abstraction_works_with_a_copy_only)
"""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import answer, command, refusal
from places import ROOT, RUNS
from pokerkit_table import histories
from pyarrow import compute, parquet
from reader_programs import read, reader_program
from refusals import refused

import mccfr
from abstraction.buckets import Abstraction
from abstraction.cards import cards_text, combo_index
from abstraction.hand_evaluator import strength
from mccfr.config.game_tables import FlopHoldemGame, HoldemGame, Menu
from mccfr.config.run_tables import AbstractionConfig
from mccfr.games.holdem import flop_holdem, holdem
from mccfr.games.line_text import line_start
from mccfr.policy import Policy
from mccfr.policy.query import query
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.directory.run import open_run
from mccfr.runs.directory.verification import problems_of
from mccfr.tables.strategy import pure_strategy
from mccfr.trees.betting_lines import find_node
from mccfr.trees.street_amounts import street_line
from storage.manifest import content_hash
from storage.npy import npy_pieces

FLOP = "max_raises = 1\n"
MENU = 'stack = 2_000\n[game.menu]\nfirst = ["1p", "allin"]\nlater = ["1p", "allin"]\n'


def write_config(tmp_path, abstraction, *, game="holdem", menu=MENU, more="", evaluation="head-to-head", boards=20):
    path = tmp_path / "hunl.toml"
    table = f'[abstraction]\npath = "{abstraction}"\n' if abstraction else ""
    path.write_text(
        f'[game]\nname = "{game}"\n{menu}{table}[run]\nworkers = 0\nnodes = 300_000\n'
        f'[evaluation]\nmethod = "{evaluation}"\nboards = {boards}\n{more}'
    )
    return path


def test_buckets_of_the_deck_are_those_of_the_abstraction(slot_abstractions, tables_read_once):
    game = holdem(HoldemGame(), AbstractionConfig(str(slot_abstractions[1])), Path())
    built = Abstraction(slot_abstractions[1])
    rng = np.random.default_rng(5)
    for _ in range(20):
        cards = rng.permutation(52)[:7].tolist()
        rows = game.cards.board_buckets(cards[2:])
        for street, known in enumerate((0, 3, 4, 5)):
            board = cards[2 : 2 + known]
            _, bucket = built.bucket(cards[:2], board)
            assert rows[street, combo_index(*cards[:2])] == bucket
            assert game.cards.hand_bucket(street, 0, cards_text(cards[:2]), cards_text(board)) == bucket
            hits = [combo_index(card, other) for card in board for other in range(52) if other != card]
            assert (rows[street, hits] == -1).all()


def test_buckets_are_read_into_shared_memory(slot_abstractions):
    cards = flop_holdem(FlopHoldemGame(), AbstractionConfig(str(slot_abstractions[0])), Path()).cards
    memory = np.zeros(cards.shared_bytes, np.uint8)
    lookup = cards.in_memory(memory, fill=True).lookup
    assert np.shares_memory(lookup.narrow, memory)
    assert all(np.array_equal(a, b) for a, b in zip(lookup, cards.lookup, strict=True))


@pytest.fixture(scope="module")
def trained(tmp_path_factory, slot_abstractions, tables_read_once):
    """A run directory of whole hold'em, and its policy."""
    root = tmp_path_factory.mktemp("hunl")
    more = f'at_nodes = [100_000]\nkeep = true\n[export]\nout = "{root / "policy"}"\n'
    config = write_config(root, slot_abstractions[1], more=more, boards=4)
    assert command("solve", config, "--run", root / "run") == 0
    return root


@pytest.fixture(scope="module")
def policy(trained):
    return Policy.open(trained / "policy")


@pytest.fixture(scope="module")
def flop_trained(tmp_path_factory, slot_abstractions):
    """A run directory of hold'em that ends with the flop, trained by two workers, and its policy.

    Its bucket tables are small.
    """
    root = tmp_path_factory.mktemp("flop")
    more = f'[export]\nout = "{root / "policy"}"\n'
    config = write_config(root, slot_abstractions[1], game="flop-holdem", menu=FLOP, more=more)
    assert command("solve", config, "--run", root / "run", "--workers", 2) == 0
    return root


def test_limit_holdem_is_trained_evaluated_and_queried(tmp_path, slot_abstractions, tables_read_once, capsys):
    config = write_config(tmp_path, slot_abstractions[1], game="limit-holdem", menu="", boards=4)
    assert command("solve", config, "--run", tmp_path / "run", "--set", "run.nodes=100_000") == 0
    found = answer(capsys, "query", tmp_path / "run", "b20b30b40", "--hand", "AsAh")
    assert [action["action"] for action in found["actions"]] == ["f", "c"] and found["pot_chips"] == 70
    assert answer(capsys, "evaluate", tmp_path / "run", "--hands", 100)["ci95_mbb"] is not None


def test_a_run_exports_a_policy_with_its_buckets(policy, trained, slot_abstractions):
    assert problems_of(trained / "policy") == problems_of(trained / "run") == []
    game = open_run(trained / "run").build_game()
    board = [0, 13, 27, 44, 51]
    assert np.array_equal(policy.game.cards.board_buckets(board), game.cards.board_buckets(board))
    assert policy.game.tree.label == game.tree.label
    again = policy.game.cards.load()
    assert all(np.array_equal(a, b) for a, b in zip(again, game.cards.load(), strict=True))


def test_a_policy_records_the_origin_of_its_buckets(policy, slot_abstractions):
    origin = policy.meta["abstraction"]
    built = Abstraction(slot_abstractions[1])
    assert {street: each["content_hash"] for street, each in origin["streets"].items()} == built.content_hashes()
    assert origin["content_hash"] == content_hash(built.content_hashes())
    assert origin["streets"]["river"]["buckets"] == 2 and origin["streets"]["river"]["recipe"] == {"features": "slot"}


def test_a_run_without_its_abstraction_works_with_a_copy_only(flop_trained, slot_abstractions, tmp_path, capsys):
    """Move a run as if to another machine; refuse another abstraction with both hashes."""
    moved, ours, another = tmp_path / "run", tmp_path / "buckets", slot_abstractions[0]
    shutil.copytree(flop_trained / "run", moved)
    config = (moved / "config.toml").read_text()
    config = config.replace(str(slot_abstractions[1]), str(tmp_path / "gone"))
    (moved / "config.toml").write_text(config.replace(str(flop_trained / "policy"), str(tmp_path / "at-end")))
    shutil.copytree(slot_abstractions[1], ours, copy_function=os.link)
    hashes = [content_hash(Abstraction(path).content_hashes())[:12] for path in (ours, another)]
    capsys.readouterr()
    nodes = open_run(flop_trained / "run").read("metrics.jsonl")[-1]["nodes_touched"]
    for verb in (
        ("status", moved),
        ("export", moved, tmp_path / "out"),
        ("evaluate", moved, "--method", "head-to-head", "--boards", 2),
        ("query", moved, "", "--hand", "AsKd"),
        ("tensorboard", moved, tmp_path / "curves"),
        ("resume", moved, "--nodes", nodes + 1, "--workers", 1),  # the worker must find the abstraction too
    ):
        assert command(*verb) == (0 if verb[0] == "status" else 2), verb
        text = "".join(capsys.readouterr())
        assert f"{tmp_path / 'gone'} is not an abstraction" in text and hashes[0] in text and "--abstraction" in text
        assert command(*verb, "--abstraction", another) == 2
        text = capsys.readouterr().err
        assert all(each in text for each in hashes) and len(text.splitlines()) == 1
        assert command(*verb, "--abstraction", ours) == 0
        capsys.readouterr()
    for more, status, words in (((), 1, "is not an abstraction"), (("--abstraction", ours), 0, "sound")):
        assert command("verify", moved, *more) == status
        assert words in capsys.readouterr().out
    for bot in (("bot", "acpc", moved, "127.0.0.1", 1), ("play", moved)):
        assert f"{tmp_path / 'gone'} is not an abstraction" in refusal(capsys, *bot)
    one, other = (Policy.open(path) for path in (tmp_path / "out", flop_trained / "policy"))
    for name in ("abstraction", "provenance", "files"):
        assert one.meta[name] == other.meta[name]
    meet = ("--method", "head-to-head", "--boards", 2, "--against", moved, "--against-abstraction", ours, "--json")
    assert answer(capsys, "evaluate", flop_trained / "policy", *meet)["value_chips"] == pytest.approx(0, abs=0.1)
    for verb in (
        ("evaluate", flop_trained / "policy", "--method", "head-to-head"),
        ("query", flop_trained / "policy", ""),
    ):
        assert "has its own bucket tables" in refusal(capsys, *verb, "--abstraction", ours)
    for verb in (("status", tmp_path), ("tensorboard", tmp_path, tmp_path / "curves")):
        assert "is a folder of runs" in refusal(capsys, *verb, "--abstraction", ours)
    assert command("verify", flop_trained / "policy", "--abstraction", ours) == 2
    assert "is not a run directory: leave --abstraction out" in capsys.readouterr().err


def test_evaluations_are_played_against_the_first_checkpoint_that_is_kept(trained):
    run = open_run(trained / "run")
    first, last = run.read("evaluations.jsonl")
    assert (first["against"], last["against"]) == ("uniform", "checkpoint 1")
    assert last["method"] == "head-to-head" and last["bound"] == "estimate" and last["boards"] == 4
    assert last["ci95_chips"][0] <= last["value_chips"] <= last["ci95_chips"][1]
    assert last["exploitability_mbb"] is None


def test_queries_answer_for_hands_classes_and_boards(policy):
    preflop = query(policy, "b300")
    assert (preflop["street"], preflop["player"], preflop["pot_chips"]) == ("preflop", 0, 400)
    assert len(preflop["hands"]) == 169 and {"AA", "AKs", "AKo", "72o"} <= set(preflop["hands"])
    river = query(policy, "cc/cc/cc/", board="Qs7h2d3c4c")
    assert river["street"] == "river" and len(river["hands"]) == 47 * 46 // 2
    one = query(policy, "cc/cc/cc/", hand="AsKd", board="Qs7h2d3c4c")
    assert [action["probability"] for action in one["actions"]] == river["hands"]["AsKd"]
    for text, board, message in (
        ("AsKd", "Qs7h", "has 2 cards: on the river give 5"),
        ("QsKd", "Qs7h2d3c4c", "shares a card"),
        ("Qs", "Qs7h2d3c4c", "hand"),
        ("AsAs", "Qs7h2d3c4c", "the card As twice"),
    ):
        refused(message, query, policy, "cc/cc/cc/", hand=text, board=board)


def documented_reader():
    """Return the program of docs/bots.md that reads a policy of whole hold'em."""
    return next(block for block in documented_python() if "def look_up(" in block)


def documented_python():
    """Return the Python programs of docs/policies.md and docs/bots.md."""
    pages = "".join((ROOT / "docs" / name).read_text() for name in ("policies.md", "bots.md"))
    return re.findall(r"```python\n(.*?)```", pages, re.DOTALL)


def test_the_documented_reader_finds_the_probabilities_of_query(policy, trained, monkeypatch, tmp_path, capsys):
    source, names = documented_reader(), {}
    assert len(source.splitlines()) <= 34
    assert set(re.findall(r"^(?:import|from) (\w+)", source, re.MULTILINE)) == {"json", "math", "pathlib", "numpy"}
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/hunl-fine-policy").symlink_to(trained / "policy")
    monkeypatch.chdir(tmp_path)
    exec(source, names)
    tree, reached = policy.game.tree, set()

    def queried(line, hand, board):
        found = query(policy, street_line(line, line_start(policy.game)), hand, board)
        reached.add(found["reached"])
        labels = [tree.label[child] for child in tree.children(find_node(tree, line))]
        return {label: action["probability"] for label, action in zip(labels, found["actions"], strict=True)}

    assert capsys.readouterr().out == f"{queried('r300c/cr900', 'KhQd', 'Kc7d2s')}\n"
    rng, lines = np.random.default_rng(3), json.loads((trained / "policy/tree_line.json").read_text())
    for node in rng.choice(tree.decisions, 100).tolist():
        cards, known = rng.permutation(52)[:7].tolist(), (0, 3, 4, 5)[tree.street[node]]
        hand, board = cards_text(cards[:2]), cards_text(cards[2 : 2 + known])
        assert names["look_up"](lines[node], hand, board) == queried(lines[node], hand, board)
    assert reached == {True, False}


@pytest.mark.parametrize("language", ["c", "js"])
def test_readers_accept_lower_case_and_refuse_unsupported_queries(trained, tmp_path, language):
    """Refuse more than six players, buckets with recall, and invalid hands and boards."""
    program, folder = reader_program(language, tmp_path), tmp_path / "changed"

    def look_up(*question):
        return subprocess.run([*program, *question], check=False, capture_output=True, text=True, timeout=60)

    at = trained / "policy", "r300c/cr900"
    assert look_up(*at, "khQD", "kC7d2s").stdout == look_up(*at, "KhQd", "Kc7d2s").stdout != ""
    meta = json.loads((link_files(trained / "policy", folder) / "meta.json").read_text())
    (folder / "meta.json").unlink()
    for seats, hand, board, words in (
        (7, "KhQd", "", "more than six players"),
        (None, "KhQd", "Qd7d2s", "there"),
        (None, "KhKh", "Qd7d2s", "hand"),
        (None, "1hKh", "Qd7d2s", "cards are written as Kc7d2s"),
        (None, "KhQd", "7d7d2s", "there"),
    ):
        (folder / "meta.json").write_text(json.dumps(meta | {"game": meta["game"] | {"seats": seats}}, indent=1))
        ended = look_up(*((folder, "") if seats else at), hand, board)
        assert ended.returncode != 0 and words in ended.stderr
    (folder / "meta.json").write_text(json.dumps(meta, indent=1))
    for street in (1, 2, 3):
        recall = folder / f"history_street{street}.npy"
        np.save(recall, np.zeros((169, 2), np.int32))
        ended = look_up(folder, "", "KhQd", "")
        assert ended.returncode != 0 and "buckets with recall" in ended.stderr
        recall.unlink()


def test_a_match_of_a_run_is_logged(trained, tmp_path):
    found = mccfr.match(mccfr.Run(trained / "run"), "always-fold", hands=200, log=tmp_path / "hands.phhs")
    assert found.record["hands"] == len(histories(tmp_path / "hands.phhs")) == 200


def link_files(policy, folder):
    """Create a folder with links to the files of a policy; return it."""
    folder.mkdir()
    for path in policy.iterdir():
        (folder / path.name).symlink_to(path)
    return folder


def copy_with_values(policy, folder):
    """Copy a policy by links and add random values.

    Return {(street, player): [buckets, places]} and {street: nodes}.
    """
    tree, rng, values, roots = policy.game.tree, np.random.default_rng(8), {}, {}
    link_files(policy.path, folder)
    for street in range(4):
        own = tree.decisions[tree.street[tree.decisions] == street]
        roots[street] = [node for node in own.tolist() if not node or tree.street[tree.parent[node]] < street]
        (folder / f"values_root_street{street}.npy").write_bytes(
            b"".join(npy_pieces(np.array(roots[street], np.int32)))
        )
        for player in range(2):
            buckets = int(policy.game.cards.buckets[street][player])
            values[street, player] = rng.normal(size=(buckets, len(roots[street]))).astype(np.float32)
            file = folder / f"value_street{street}_player{player}.npy"
            file.write_bytes(b"".join(npy_pieces(values[street, player])))
    return values, roots


@pytest.mark.parametrize("language", ["python", "c", "js"])
def test_readers_find_values_where_streets_begin(policy, trained, tmp_path, monkeypatch, language):
    rng = np.random.default_rng(4)
    (tmp_path / "runs").mkdir()
    folder = tmp_path / "runs/hunl-fine-policy"
    values, roots = copy_with_values(policy, folder)
    lines, names = json.loads((folder / "tree_line.json").read_text()), {}
    if language == "python":
        source = next(block for block in documented_python() if "def value(" in block)
        assert len(source.splitlines()) <= 32
        monkeypatch.chdir(tmp_path)
        exec(documented_reader().partition("\nprint(")[0] + source, names)
    questions, expected = [], []
    for street in range(4):
        place = int(rng.integers(len(roots[street])))
        node, known = roots[street][place], (0, 3, 4, 5)[street]
        cards = rng.permutation(52)[:7].tolist()
        hand, board = cards_text(cards[:2]), cards_text(cards[2 : 2 + known])
        player = int(policy.game.tree.arrays.player[node])
        bucket = policy.game.cards.hand_bucket(street, player, hand, board or None)
        expected.append(float(values[street, player][bucket, place]))
        questions.append([folder, lines[node], hand, *[board] * (known > 0)])
        if language == "python":
            assert names["value"](lines[node], hand, board) == expected[-1]
            other = names["value"](lines[node], hand, board, 1 - player)
            assert other == float(values[street, 1 - player][bucket, place])
    if language != "python":
        found = read(reader_program(language, tmp_path), questions)
        assert [each["value"] for each in found] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("language", ["c", "js"])
def test_readers_draw_one_reading_for_each_hand_number(trained, tmp_path, language):
    """Check that the readings drawn for 100 hand numbers have the probabilities of the vector."""
    assert command("export", trained / "policy", tmp_path / "vectors.jsonl", "--vectors", 60) == 0
    vectors = [json.loads(text) for text in (tmp_path / "vectors.jsonl").read_text().splitlines()]
    vector = max(vectors, key=lambda vector: min(reading["probability"] for reading in vector["readings"]) % 1)
    assert len(vector["readings"]) > 1
    question = [trained / "policy", vector["line"], vector["hand"], vector["board"]]
    answers = read(reader_program(language, tmp_path), [[*question, number] for number in range(100)])
    found = np.array([[each.get(action, 0.0) for action in vector["actions"]] for each in answers])
    assert 1 < len(np.unique(found, axis=0)) <= len(vector["readings"])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert (abs(found.mean(axis=0) - vector["probabilities"]) <= 4.5 * error + 1e-9).all()


@pytest.mark.parametrize("language", ["cpp", "js"])
def test_documented_bots_play_legally_against_bets_outside_the_tree(policy, trained, tmp_path, language):
    reader = reader_program("c" if language == "cpp" else "js", tmp_path)
    bot = [reader[0], str(ROOT / "docs/examples/acpc_bot.mjs")]
    if language == "cpp":
        bot = [str(tmp_path / "acpc_bot")]
        strict = "-std=c++17", "-Wall", "-Wextra", "-Werror"
        subprocess.run(["c++", *strict, "-o", *bot, ROOT / "docs/examples/acpc_bot.cpp"], check=True, timeout=60)
    rules = policy.game.real_rules
    hands = "20" if language == "cpp" else "6"  # a process of the reader for each decision
    match = "dealer", "--hands", hands, "--with", "odd-size", "--port", "0", "--stack", f"{rules.stack:g}"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    dealer = subprocess.Popen([sys.executable, "-m", "mccfr", *match], cwd=tmp_path, **pipes)
    try:
        port = dealer.stderr.readline().split(":")[-1].strip()
        played = subprocess.run([*bot, trained / "policy", "localhost", port], check=False, timeout=120)
        out, printed = dealer.communicate(timeout=60)
    finally:
        dealer.kill()
    assert played.returncode == 0 and dealer.returncode == 0, printed
    assert f"{hands} hands" in out and "legal" not in printed


def test_exported_rows_by_hand_equal_the_answers_of_query(policy, trained, tmp_path, capsys, tables_read_once):
    for kind, source, cards in (("csv", "run", "Qs 7h2d"), ("parquet", "policy", "Qs 7h2d3c")):
        hands = ("--format", kind, "--by", "hand", "--board", cards)
        assert command("export", trained / source, tmp_path / f"out.{kind}", *hands) == 0
    table = parquet.read_table(tmp_path / "out.parquet")
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    columns = table.filter(compute.field("board") != "Qs7h2d3c").to_pydict()
    assert columns["hand"] == [row["hand"] for row in rows]
    assert np.allclose(columns["probability"], [float(row["probability"]) for row in rows], atol=1e-4)
    for line, board, count in (("", None, 169), ("cc/", "Qs7h2d", 1176), ("cc/cc/", "Qs7h2d3c", 1128)):
        here = table.filter(compute.field("line") == line).to_pydict()
        answer = query(policy, line, board=board)["hands"]
        assert len(answer) == count and here["probability"] == pytest.approx(
            [share for name in dict.fromkeys(here["hand"]) for share in answer[name]], abs=1e-4
        )
    assert set(table["board"].unique().to_pylist()) == {"", "Qs7h2d", "Qs7h2d3c"}
    capsys.readouterr()
    for wrong, words in (
        (("--format", "csv", "--by", "hand", "--board", "Qs7h"), "boards there have 0, 3, 4, 5 cards"),
        (("--format", "csv", "--board", "Qs7h2d"), "add --by hand"),
        (("--by", "hand"), "choose csv or parquet"),
    ):
        assert command("export", trained / "policy", tmp_path / "none", *wrong) == 2
        assert words in capsys.readouterr().err and not (tmp_path / "none").exists()


def test_always_call_never_folds_even_where_it_may_not_limp(slot_abstractions):
    menu = Menu(first=("1p", "allin"), later=("1p", "allin"), limp=False)
    game = holdem(HoldemGame(menu=menu), AbstractionConfig(str(slot_abstractions[0])), Path())
    labels = [game.tree.label[child] for child in game.tree.children(0)]
    assert labels == ["f", "r300", "r20000"]
    source = Profile(game, pure_strategy(game, "c"))
    assert source.probabilities(0, 0).tolist() == [0, 1, 0]
    assert all(
        source.probabilities(node, 0)[[game.tree.label[child] for child in game.tree.children(node)].index("c")] == 1
        for node in game.tree.decisions[1:].tolist()
    )


def test_invalid_configurations_are_refused_and_leave_no_run(tmp_path, slot_abstractions, capsys):
    cases = {
        "needs an [abstraction]": write_config(tmp_path, None).read_text(),
        "too large for exact": write_config(tmp_path, slot_abstractions[1], evaluation="exact").read_text(),
        "is not an abstraction": write_config(tmp_path, tmp_path / "nowhere").read_text(),
        "bet size '0p'": write_config(tmp_path, slot_abstractions[1], menu=MENU.replace("1p", "0p")).read_text(),
        "game.stack": write_config(tmp_path, slot_abstractions[1], menu=MENU.replace("2_000", "-5")).read_text(),
    }
    for message, text in cases.items():
        (tmp_path / "hunl.toml").write_text(text)
        assert command("solve", tmp_path / "hunl.toml", "--run", tmp_path / "run") == 2, message
        printed = capsys.readouterr().err
        assert message in printed and "Traceback" not in printed
        assert not (tmp_path / "run").exists()


def test_flop_holdem_is_lossless_without_an_abstraction():
    game = flop_holdem(FlopHoldemGame(), None, Path())
    assert game.buckets.tolist() == [169, 169, 1286792, 1286792]
    row = game.cards.bucket_row(1, 0, [0, 1, 2])
    assert len(np.unique(row[row >= 0])) < (row >= 0).sum()  # 2c 2d 2h: suits of the deck are alike
    five = flop_holdem(
        FlopHoldemGame(board_cards=5), AbstractionConfig("no", str(RUNS / "abstractions/quick.toml")), Path()
    )
    assert five.buckets.tolist() == [169, 169, 200, 200] and five.cards.board_cards == (0, 5)


def test_5_flop_holdem_needs_no_abstraction():
    """Check the size of the paper's game; counting needs no bucket table."""
    paper = FlopHoldemGame(bet="pot", limp=False, max_raises=[1, 2], board_cards=5)
    game = flop_holdem(paper, None, Path())
    assert game.buckets.tolist() == [169, 169, 123156254, 123156254]
    assert game.infosets.tolist() == [169, 169, 3 * 123156254, 3 * 123156254]
    refused("boards of 5 cards are too many", game.cards.listed)


def test_listed_flops_are_those_of_the_deck():
    """Compare every listed flop's buckets and strengths with the deck's; five board cards are refused."""
    deck = flop_holdem(FlopHoldemGame(), None, Path()).cards
    cards = deck.listed()
    assert [len(boards) for boards in cards.board_cards] == [1, 22_100]
    for board in (0, 7_777, 22_099):
        known = cards.board_cards[1][board].tolist()
        assert np.array_equal(cards.bucket[1][0, board], deck.bucket_row(1, 0, known))
        for combo in (3, 500, 1325):
            hand = cards.hand_cards[combo].tolist()
            wanted = -1 if set(hand) & set(known) else strength([*hand, *known])
            assert cards.strength[board, combo] == wanted
    five = FlopHoldemGame(board_cards=5)
    whole = flop_holdem(five, AbstractionConfig("no", str(RUNS / "abstractions/quick.toml")), Path()).cards
    refused("boards of 5 cards are too many", whole.listed)


def test_flop_holdem_runs_by_public_chance_sampling_and_head_to_head(
    tmp_path, slot_abstractions, tables_read_once, capsys
):
    """Solve and evaluate with five board cards; the result is far above uniform play."""
    more = f'[solver]\nalgorithm = "public-chance-sampling"\n[export]\nout = "{tmp_path / "policy"}"\n'
    menu = f"{FLOP}board_cards = 5\n"
    config = write_config(tmp_path, slot_abstractions[1], game="flop-holdem", menu=menu, more=more)
    assert command("solve", config, "--run", tmp_path / "run", "--iterations", 400) == 0
    assert problems_of(tmp_path / "run") == problems_of(tmp_path / "policy") == []
    last = open_run(tmp_path / "run").read("evaluations.jsonl")[-1]
    assert last["boards"] == 20 and last["ci95_chips"][0] > 0
    options = ("--method", "head-to-head", "--boards", 40, "--seed", 7)
    assert answer(capsys, "evaluate", tmp_path / "policy", *options)["ci95_chips"][0] > 0
