"""Error messages for invalid games, rules, methods, programs, algorithms and files of users.

Shows:

* User-defined objects are checked before use (test_games, test_betting, test_rules, test_methods,
  test_programs, test_recipes, test_experiments)
"""

import re
from math import inf, nan

import numpy as np
from commands import call
from guests import forgetting
from refusals import refusals, refused

import mccfr
from abstraction.recipe import load_recipe
from mccfr.api.evaluations import _method_of
from mccfr.cards.no_cards import NO_CARDS
from mccfr.cards.small_deck_cards import small_deck
from mccfr.cli import progress_display
from mccfr.config import plugins
from mccfr.config.solver_tables import SolverConfig
from mccfr.evaluation.methods import EvaluationLine, Method
from mccfr.evaluation.methods.registry import measure
from mccfr.experiments.definition import experiment_from
from mccfr.gallery.history_game import HistoryGame
from mccfr.games import openspiel_import
from mccfr.games.betting import BettingRules
from mccfr.games.betting_tree import build_tree
from mccfr.games.game import Rake
from mccfr.games.translation import real_betting
from mccfr.matches.programs import ProgramSpec
from mccfr.play import Program
from mccfr.policy import Profile
from mccfr.solvers.variants import Variant
from mccfr.tables.strategy import uniform_strategy
from mccfr.trees.history_compiler import Chance, Decision, build_history_tree

# --- games whose histories a function expands ---


def coin(history, chance=(("h", "t"), (0.5, 0.5), ("h", "t")), choice=(0, "", ("l", "r"), ("l", "r")), payoff=1.0):
    """Expand a coin, then a choice of a player who does not see it; tests replace parts by invalid ones."""
    if history == "":
        return Chance(*chance)
    if history in ("h", "t"):
        return Decision(*choice[:3], [history + end for end in choice[3]], *choice[4:])
    return payoff(history) if callable(payoff) else payoff


def game(**broken):
    return build_history_tree("", lambda history: coin(history, **broken), name="the coin")


def outcomes(*shares):
    return {"chance": (("h", "t"), shares, ("h", "t"))}


def losing(history):
    return {"hl": 1.0, "hr": -1.0, "tl": 2.0}[history] if len(history) == 2 else coin(history)


def endless(history):
    return Decision(len(history) % 2, history, ["a", "b"], [history + "a", history + "b"])


AT_ROOT, AFTER_H, AFTER_HL = "^the coin, at the root: ", "^the coin, after the history 'h': ", "'h l': "

test_games = refusals(
    (AT_ROOT + r"the probabilities sum to 0\.9; they must sum to 1", lambda: game(**outcomes(0.5, 0.4))),
    (AT_ROOT + "the outcome 't' has the probability -0.4; 0 to 1", lambda: game(**outcomes(1.4, -0.4))),
    (AT_ROOT + "the outcome 'h' has the probability nan", lambda: game(**outcomes(nan, 0.5))),
    (AT_ROOT + "the outcome 'h' has the probability '1/2'", lambda: game(**outcomes("1/2", 0.5))),
    (AT_ROOT + "2 outcomes have 3 probabilities; each outcome needs one", lambda: game(**outcomes(0.5, 0.2, 0.3))),
    (AT_ROOT + "the probabilities sum to 1.000000002", lambda: game(**outcomes(0.5, 0.500000002))),
    (
        AT_ROOT + "2 labels and 1 children: give one label and one child for each outcome",
        lambda: game(chance=(("h", "t"), (0.5, 0.5), ("h",))),
    ),
    (
        AFTER_H + "3 labels and 2 children: give one label and one child for each action",
        lambda: game(choice=(0, "", ("l", "m", "r"), ("l", "r"))),
    ),
    (AFTER_H + "two actions have one label, of l, l; they must", lambda: game(choice=(0, "", ("l", "l"), ("l", "r")))),
    (AFTER_H + "the label 1 is not allowed; a text without", lambda: game(choice=(0, "", (0 + 1, 2), ("l", "r")))),
    (AFTER_H + "the label 'go left' is not allowed", lambda: game(choice=(0, "", ("go left", "r"), ("l", "r")))),
    (AFTER_H + r"names = \['left'\] is not allowed", lambda: game(choice=(0, "", "lr", "lr", ["left"]))),
    (AFTER_H + "the player 2 acts; players are 0 and 1", lambda: game(choice=(2, "", ("l", "r"), ("l", "r")))),
    (AFTER_H + "the player 'me' acts; players are 0 and 1", lambda: game(choice=("me", "", ("l", "r"), ("l", "r")))),
    (AFTER_H + r"the infoset \('x',\) is not allowed; a", lambda: game(choice=(0, ("x",), ("l", "r"), ("l", "r")))),
    (AFTER_H + "a history without actions is neither", lambda: game(choice=(0, "", (), ()))),
    (AT_ROOT + "a generator is given where a list is", lambda: game(chance=("ht", (0.5, 0.5), (c for c in "ht")))),
    (AFTER_HL + "the payoff is nan; a finite number of chips", lambda: game(payoff=nan)),
    (AFTER_HL + "the payoff is '3'; a finite number", lambda: game(payoff="3")),
    (AFTER_HL + r"the payoff is \(1, 0, 0\); a finite number", lambda: game(payoff=(1, 0, 0))),
    (AFTER_HL + "the payoffs 1 and 1 sum to 2; only zero-sum games", lambda: game(payoff=(1, 1))),
    (r"losing raised KeyError: 'tr' after the history 't r' \(test_user_mistakes.py, ", build_history_tree, "", losing),
    ("^the game, after the history 'a a .* the game goes on after 5,000 moves", build_history_tree, "", endless),
)


def counts(**changed):
    tree = build_tree(BettingRules((1, 1), (0,), lambda state: [2] if state.bets == 0 else [], raise_text="b"))
    return mccfr.Game("mine", tree, small_deck(3, 1, 1, [0]), **changed)


def streets() -> mccfr.Game:
    tree = build_tree(BettingRules((1, 1), (0, 0), lambda state: []))
    return mccfr.Game("mine", tree, small_deck(3, 1, 1, [0]))


def pot() -> mccfr.Game:
    return counts(pot_chips=nan)


def raked() -> mccfr.Game:
    return counts(rake=Rake(1.5, 1))


def no_tree() -> mccfr.Game:
    return mccfr.Game("mine", None, NO_CARDS)


def fails() -> mccfr.Game:
    return {}["deck"]


test_game_functions = refusals(
    ("^game.name = '.*': its tree has 2 streets and its cards 1; they must agree", streets),
    ("^game.name = '.*': pot_chips = nan is not allowed; a finite number above 0", pot),
    (r"^game.name = '.*': rake = Rake\(share=1.5, cap=1\) is not allowed; a share between 0 and 1", raked),
    ("^game.name = '.*': its tree is a NoneType; build_tree or build_history_tree makes one", no_tree),
    (r"^game.name = '.*': test_user_mistakes:fails raised KeyError: 'deck' \(test_user_mistakes.py, line", fails),
    call=mccfr.game,
)


# --- games of betting rules ---


def rules(targets, **others):
    return build_tree(BettingRules(**{"put_in": (1, 1), "first_player": (0,), "raise_targets": targets, **others}))


def pot_size(state):
    return [state.to_call / 0]


TARGETS = "amounts to raise to are needed, ascending, above 1 and at most"

test_betting = refusals(
    (r"^test_user_mistakes:pot_size raised ZeroDivisionError: .* after the line ''", lambda: rules(pot_size)),
    (rf"after the line '' returned \[3, 2\]; {TARGETS} 1e\+15 chips", lambda: rules(lambda state: [3, 2])),
    (rf"returned \[2, nan, 3\]; {TARGETS}", lambda: rules(lambda state: [2, nan, 3])),
    (rf"returned \[2, 30\]; {TARGETS} 10 chips", lambda: rules(lambda state: [2, 30], stack=10)),
    ("raised TypeError: 'int' object is not iterable after the line ''", lambda: rules(lambda state: 2)),
    ("raise_text = 'b' writes alike: write {} where", lambda: rules(lambda state: [2, 3], raise_text="b")),
    (r"the betting rules of .*: first_player = \(2,\) is not", lambda: rules(lambda state: [], first_player=(2,))),
    (r"put_in = \(1, inf\) is not allowed; two to six finite", lambda: rules(lambda state: [], put_in=(1, inf))),
    ("stack = nan is not allowed; it must be at least", lambda: rules(lambda state: [], stack=nan)),
    (r"board_cards = \(0, 1\) is not allowed; a number", lambda: rules(lambda state: [], board_cards=(0, 1))),
)


# --- regret rules and schedules ---


def evenly(regrets, strategy, at=1.0):
    for a in range(len(regrets)):
        strategy[a] = at / len(regrets)


def changing(regrets, strategy):
    evenly(regrets, strategy)
    regrets[0] = 0.5


def short(regrets, strategy):
    strategy[:] = [1.0, 0.0]


def halves(regrets, strategy):
    evenly(regrets, strategy, at=0.5)


def huge(regrets, strategy):
    evenly(regrets, strategy)
    if regrets[0] > 1e12:
        strategy[0] = np.nan


test_rules = refusals(
    (r"^the regret rule test_user_mistakes:halves makes \[0\.5\] of the regrets \[0\.0\]: probabilities", halves),
    (r"^test_user_mistakes:short raised ValueError: could not broadcast .* for the regrets \[0\.0\]", short),
    (r"^the regret rule test_user_mistakes:changing changes the regrets \[0\.0\]: it must leave them", changing),
    (r"huge makes \[nan, .*\] of the regrets \[1\.15.*e\+18, 0\.0\]: probabilities are needed", huge),
    (r"raised TypeError: .*takes 1 positional argument but 2 were given for the regrets", lambda regrets: None),
    call=mccfr.regret_rule,
)


class Late(Variant):
    """A schedule that fails after four iterations."""

    def step(self, iteration):
        return super().step({1: 1, 2: 2, 3: 3, 4: 4}[iteration])


class Weightless(Variant):
    def step(self, iteration):
        return super().step(iteration)._replace(weight=nan)


class Nothing(Variant):
    def step(self, iteration):
        return None


test_schedules = refusals(
    (r"^test_user_mistakes:Late.step raised KeyError: 5 for iteration 5 \(", Late().step, 5),
    ("^test_user_mistakes:Weightless.step returned Step.*weight=nan.* for iteration 2; a", Weightless().step, 2),
    ("^test_user_mistakes:Nothing.step returned None for iteration 1; a Step of finite numbers", Nothing().step, 1),
)


# --- evaluation methods ---


class Found(Method):
    """A method whose result a test sets in `found`."""

    found: object = {}

    def find(self, side, against, options):
        return self.found(side) if callable(self.found) else self.found


class Undefined(Method):
    pass


class Optionless(Found):
    options = ("seed",)


class Problematic(Found):
    def problem(self, game):
        return game.nothing


class Lined(Found):
    """A method whose result lacks a field of its line type."""

    class Line(EvaluationLine):
        note: str

    line = Line
    found = staticmethod(lambda side: {"value_chips": 1.0})


def finding(found):
    return type("Found", (Found,), {"found": staticmethod(found) if callable(found) else found})


def value(side):
    return side.strategy.nothing


KUHN = mccfr.game("kuhn")


def measured(method):
    name = plugins.name_of_object(plugins.METHODS, method)
    return measure(name, Profile(KUHN, uniform_strategy(KUHN)))


FIND = "^test_user_mistakes:Found.find "

test_methods = refusals(
    (FIND + r"raised AttributeError: 'Strategy' object has no attribute 'nothing' \(", finding(value)),
    (FIND + "returned 3; a dict with value_chips is needed", finding(3)),
    (FIND + r"returned \{'value': 1\}; a dict with value_chips", finding({"value": 1})),
    (FIND + "found value_chips = nan; a finite number of chips", finding({"value_chips": nan})),
    (FIND + "found spread = inf; a finite number, or None", finding({"value_chips": 1, "spread": inf})),
    ("Found.find: its record does not have the fields of its line type: Object missing required field note", Lined),
    ("^test_user_mistakes:value raised AttributeError: 'Strategy' object", _method_of(value)),
    (r"its options are \('seed',\); a class derived from .*MethodOptions", Optionless),
    ("^test_user_mistakes:Problematic.problem raised AttributeError", Problematic),
    ("^test_user_mistakes:Undefined raised TypeError: Can't instantiate abstract class", Undefined),
    call=measured,
)


# --- programs at the table ---


class Acting(Program):
    """A program whose action a test sets in `action`."""

    action: object = "c"

    def act(self, random):
        return self.action if self.action != "error" else {}["strategy"]


def acted(action):
    player = ProgramSpec(type("Acting", (Acting,), {"action": action})).player(real_betting(KUHN))
    player.deal(0, "K")
    return player.choose()


ACT = "^test_user_mistakes:Acting.act "

test_programs = refusals(
    (ACT + r"raised KeyError: 'strategy' after the line '' \(test_user_mistakes.py", "error"),
    (ACT + "returned None after the line ''; c, f, b or rN is needed", None),
    (ACT + "returned 'f': ", "f"),
    (ACT + "returned 'r9': ", "r9"),
    call=acted,
)


# --- recipes ---


def read(text, tmp_path):
    path = tmp_path / "recipe.toml"
    streets = {"flop": "features = 'ehs'\nbuckets = 9", "turn": "features = 'ehs'\nbuckets = 9"}
    street, _, keys = text.partition(": ")
    streets = {**streets, "river": streets["turn"], street: keys.replace(", ", "\n")}
    path.write_text("\n".join(f"[{name}]\n{lines}" for name, lines in streets.items()))
    raise ValueError(refused(r"recipe\.toml", load_recipe, path))


EHS2 = "flop: features = 'ehs2', buckets = 9, "

test_recipes = refusals(
    *(
        (f"flop.{key} means nothing where flop.features = 'ehs2', which takes buckets, ", f"{EHS2}{key}")
        for key in ("bins = 50", "clusters = 8", "levels = 1", "distance = 'emd'", "sample = 100", "iterations = 40")
    ),
    ("flop.clusters = 4 means nothing", "flop: features = 'histogram', buckets = 9, clusters = 4"),
    ("flop.bins = 9 means nothing", "flop: features = 'potential', buckets = 9, bins = 9"),
    ("turn.nested = true means nothing", "turn: features = 'lossless', nested = true"),
    ("river.bins = 9 means nothing", "river: features = 'ochs', buckets = 9, bins = 9"),
    ("flop.buckets = 1500000 is .*: the flop has at most 1,286,792", "flop: features = 'ehs', buckets = 1500000"),
    ("preflop.buckets = 170 is .*: the preflop has at most 169", "preflop: features = 'ehs', buckets = 170"),
    call=read,
)


# --- experiments ---


def experiment(compare, tmp_path):
    return experiment_from({"game": {"name": "kuhn"}, "compare": {"last": 10, **compare}}, tmp_path, "mine.toml")


def setting(override):
    return {"variant": [{"name": "a", "set": [override]}]}


test_experiments = refusals(
    (r"^mine.toml: compare.seeds\[1\] = -1 is not allowed: it must be at least 0", {"seeds": [0, -1]}),
    ("^mine.toml: variant 'a' is there twice", {"variant": [{"name": "a"}] * 2}),
    ("variant 'a': solver.discount = 'some'", setting("solver.discount=some")),
    ("variant 'a': unknown key 'nam' in game", setting("game.nam=leduc")),
    call=experiment,
)


class Failing(HistoryGame):
    """An algorithm that fails in its third iteration, or writes NaN to its strategy sums."""

    class Options(SolverConfig, frozen=True, tag="failing"):
        fails: bool = True

    options = Options

    def iterate(self, t):
        self.nodes += 1
        if self.given.fails:
            return {1: 1, 2: 2}[t]
        self.infosets[0].strategy_sum[:] = nan
        return None


def solved(fails):
    solver = mccfr.solver(KUHN, Failing, fails=fails)
    solver.run(iterations=4)
    return mccfr.evaluate(solver)


test_algorithms = refusals(
    (r"^test_user_mistakes:Failing.iterate raised KeyError: 3 in iteration 3 \(", True),
    ("strategy_sum/street0/player0 holds .*, after 4 iterations of the algorithm test_user_mistakes:Failing", False),
    call=solved,
)


def test_valid_input_is_accepted():
    """Valid payoffs, shares, rules, schedules, methods and programs are accepted unchanged."""
    plain = game(payoff=lambda history: float(len(history)))
    shares = {"chance": (["h", "t"], np.array([0.5, 0.5]), "ht"), "choice": (np.int64(0), "", ("l", "r"), "lr")}
    pairs = game(payoff=lambda history: (np.float32(len(history)), -len(history)), **shares)
    for one, other in zip(plain.arrays, pairs.arrays, strict=True):
        assert np.array_equal(one, other)
    assert mccfr.regret_rule(evenly).name == "test_user_mistakes:evenly"
    steps = [Late().step(iteration) for iteration in (1, 2)]
    assert steps == [Variant().step(iteration) for iteration in (1, 2)]
    assert measured(finding({"value_chips": np.float64(0.5), "seen": None}))["value_chips"] == 0.5
    assert acted("c") == "c" and counts().pot_chips == 1


BROKEN = """
from mccfr import Game
from mccfr.cards.no_cards import NO_CARDS
from mccfr.trees.history_compiler import Decision, build_history_tree

def mine() -> Game:
    def expand(history):
        return {}["payoff"] if history else Decision(0, "", ["go"], ["went"])
    return Game("mine", build_history_tree("", expand), NO_CARDS)
"""


def test_the_traceback_option_prints_the_traceback(tmp_path, monkeypatch, capsys):
    (tmp_path / "broken_game.py").write_text(BROKEN)
    (tmp_path / "run.toml").write_text('[game]\nname = "broken_game:mine"\n')
    sentence = "mccfr: game.name = 'broken_game:mine': broken_game:mine.expand raised KeyError: 'payoff' after the"
    with forgetting(tmp_path, monkeypatch):
        ended = call(capsys, "plan", tmp_path / "run.toml")
        assert ended.status == 2 and ended.err.startswith(sentence) and ended.err.count("\n") == 1
        assert "'go' (broken_game.py, line 8); mccfr --traceback COMMAND" in ended.err
        ended = call(capsys, "--traceback", "plan", tmp_path / "run.toml")
    first, *_, last = ended.err.splitlines()
    assert ended.status == 2 and first.startswith("Traceback") and last.startswith(sentence)
    assert 'broken_game.py", line 8, in expand' in ended.err


def test_a_long_import_prints_its_count_and_ends_at_the_limit(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(openspiel_import, "MOST_HISTORIES", 9_000)
    monkeypatch.setattr(progress_display, "_LATE_SECONDS", 0.0)
    (tmp_path / "run.toml").write_text('[game]\nname = "openspiel"\ngame = "leduc_poker"\n')
    ended = call(capsys, "plan", tmp_path / "run.toml")
    counted, refused_at = ended.err.splitlines()
    assert ended.status == 2
    assert re.search(r"'leduc_poker': [4-9],\d{3} histories so far, at most 9,000 are allowed", counted)
    assert "'leduc_poker' has at least 9,002 histories; 9,000 are allowed" in refused_at
