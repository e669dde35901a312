"""The commands of PioSOLVER's protocol: settings, building and solving a tree, and queries about it.

Each command is a method.  It takes the text behind the command's name and returns the answer, or None for a plain
acknowledgement.  Invalid requests raise `ValueError` with one sentence.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.cards import COMBO_COUNT, combo_text
from abstraction.range_notation import read_range
from mccfr.common.package import VERSION
from mccfr.config.game_tables import HoldemSubgame
from mccfr.config.value_limits import share_text, shown
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.results.line_spot import game_config, starting_stack
from mccfr.runs.results.targets import Reference, open_target
from mccfr.tables.strategy import BlockRows, Strategy, row_starts
from mccfr.upi.background_solver import Goal, LockedRows, Say, SpotEngine, SpotProblem, SpotWork, measure
from mccfr.upi.node_names import DECIDES, Node, SpotTree
from mccfr.upi.node_values import HandNumbers, SpotValues, mean
from mccfr.upi.tree_files import read_tree, write_tree
from mccfr.upi.tree_lines import Amounts, begins_with, bets, read_amounts
from storage.directory_lock import read_unchanged
from storage.threads import available_threads

Floats = npt.NDArray[np.float64]
POSITIONS = tuple(name.removesuffix("_DEC") for name in DECIDES)
_ROOT = "r"
_DIGITS = 8
_SUM_ERROR = 1e-3  # of probabilities that a client has rounded


class UpiSession:
    """The settings and the tree of one client; its methods are the commands that use them."""

    def __init__(self, say: Say) -> None:
        """Begin without a tree; `say` writes lines that answer no command, such as a solve's progress."""
        self._say = say
        self._ranges: list[str | None] = [None, None]
        self._board, self._pot, self._stack = "", 0.0, 0.0
        self._rake, self._rake_cap = 0.0, 0.0
        self._lines = list[Amounts]()
        self._accuracy: tuple[float, bool] = (0.003, True)  # and True if it is a share of the pot
        self._threads = available_threads()
        self._tree: SpotTree | None = None
        self._engine: SpotEngine | None = None
        self._work: SpotWork | None = None
        self._played: Strategy | None = None
        self._values: SpotValues | None = None
        self._locked = dict[str, LockedRows]()
        self._locks_changed = False

    # --- settings ---

    def set_range(self, text: str) -> None:
        """Set the range of OOP or IP: `OOP AA,KK:0.5`, or `OOP` and 1,326 weights of hands."""
        position, _, range_text = text.partition(" ")
        player = _position(position)
        if not read_range(range_text).any():
            raise ValueError(f"the range of {position} has no hand: give at least one")
        self._ranges[player] = range_text

    def set_board(self, text: str) -> None:
        """Set the board: `QsJh2h`, with or without spaces."""
        self._board = "".join(text.split())

    def set_pot(self, text: str) -> None:
        """Set the pot: `0 0 180`, the bets of OOP and IP (must be 0) and the pot in chips."""
        amounts = _numbers(text, 3, "set_pot takes the chips of OOP, of IP and of the pot: 0 0 180")
        if amounts[0] or amounts[1]:
            raise ValueError("set_pot: a tree begins before any bet on its street: give 0 0 and the pot")
        self._pot = amounts[2]

    def set_eff_stack(self, text: str) -> None:
        """Set the chips that each player has behind."""
        (self._stack,) = _numbers(text, 1, "set_eff_stack takes the chips that each has behind")

    def set_rake(self, text: str) -> None:
        """Set the rake as a share of every pot and its maximum in chips; 0 0 is no rake."""
        expected = "set_rake takes a share below 1 and the most chips: 0.05 30, or 0 0"
        rake, cap = _numbers(text, 2, expected)
        if rake >= 1 or bool(rake) != bool(cap):
            raise ValueError(expected)
        self._rake, self._rake_cap = rake, cap

    def set_threads(self, text: str) -> None:
        """Set the number of threads; 0 is one for each processor."""
        expected = "set_threads takes a whole number up to 1024, 0 for one a processor"
        (count,) = _numbers(text, 1, expected)
        if count > 1024 or count % 1:
            raise ValueError(expected)
        self._threads = int(count) or available_threads()

    def set_accuracy(self, text: str) -> None:
        """Set the exploitability that ends a solve: `0.5` or `0.5 chips`, or `0.003 fraction` of the pot."""
        number, _, unit = text.partition(" ")
        if unit.strip() not in ("", "chips", "fraction"):
            raise ValueError(f"set_accuracy: {shown(unit)} is no unit: say chips or fraction")
        (accuracy,) = _numbers(number, 1, "set_accuracy takes a number, and chips or fraction")
        self._accuracy = accuracy, unit.strip() == "fraction"

    def add_line(self, text: str) -> None:
        """Add a line's bets to the settings: `0 0 12 38`, the acting player's chips put in each time."""
        self._lines.append(read_amounts(text))

    def remove_line(self, text: str) -> None:
        """Remove a betting line, and all lines that continue it, from the settings."""
        amounts = read_amounts(text)
        kept = [line for line in self._lines if not begins_with(line, amounts)]
        if len(kept) == len(self._lines):
            raise ValueError(f"remove_line: no line that was added begins with {text.strip()}")
        self._lines = kept

    def clear_lines(self, _: str) -> None:
        """Remove all betting lines from the settings."""
        self._lines = []

    def accept(self, _: str) -> None:
        """Accept a command of PioSOLVER that has no effect in this program."""

    # --- the tree ---

    def _game(self) -> dict[str, Any]:
        lacking = [name for name, given in zip(POSITIONS, self._ranges, strict=True) if given is None]
        if lacking:
            raise ValueError(f"there is no range of {lacking[0]}: set_range {lacking[0]} comes first")
        if not self._board or not self._pot or not self._stack:
            raise ValueError("a tree needs set_board, set_pot and set_eff_stack before it")
        ranges = dict(zip(("oop", "ip"), self._ranges, strict=True))
        added = bets(self._lines, self._pot / 2)
        raked = {"rake": share_text(self._rake), "rake_cap": self._rake_cap} if self._rake else {}
        return {
            "board": self._board,
            "ranges": ranges,
            "pot": self._pot,
            "effective_stack": self._stack,
            "big_blind": 1,  # the smallest bet in chips
            "menu": {"first": [], "later": [], "add": added},
            **raked,
        }

    def build_tree(self, _: str) -> None:
        """Build the betting tree from the settings, with regrets and strategy sums of 0."""
        self.free_tree("")
        spot = SpotProblem(self._game(), self._threads)
        self._set_tree(spot.tree, SpotEngine(spot))

    def free_tree(self, _: str) -> None:
        """Remove the tree, its regrets and its strategy; keep the settings."""
        self._tree = self._engine = self._played = self._values = self._work = None

    def estimate_tree(self, _: str) -> str:
        """Return as text the MB of regrets and strategy sums, and the number of nodes of the betting tree."""
        spot = SpotProblem(self._game(), self._threads)
        nodes = len(spot.tree.tree.parent)
        return f"estimated tree size: {spot.layout.nbytes / 2**20:.0f} MB\n{nodes} nodes without cards"

    def _set_tree(self, tree: SpotTree, engine: SpotEngine | None, played: Strategy | None = None) -> None:
        self._tree, self._engine, self._played, self._values = tree, engine, played, None
        self._locked, self._locks_changed = {}, False

    def dump_tree(self, text: str) -> None:
        """Write the tree, its regrets, strategy sums and locked nodes to a file that `load_tree` reads.

        The file is an NPZ archive, not of PioSOLVER's format; an existing one is replaced.  `text` is the file name, in
        double quotes if it has blanks.  Further words have no effect.

        Raises `ValueError` without tree or file name, or if a run or policy was loaded; `OSError` if writing fails.
        """
        self._apply_locks()
        write_tree(_path(text), self._solver(), list(self._locked))

    def load_tree(self, text: str) -> None:
        """Read a tree from a file of dump_tree, or the strategy from a directory of a run or policy.

        A policy is an exported strategy.  Only a tree from a file of dump_tree can be trained further.
        """
        path = _path(text)
        if path.is_dir():
            config, target = read_unchanged(path, lambda: (game_config(path), open_target(Reference(path))))
            if not isinstance(config, HoldemSubgame):
                raise ValueError(f"{path} is not of a spot (a game that begins on a board): give that of one")
            tree = SpotTree(target.game, starting_stack(config) - target.game.pot_chips / 2)
            self.free_tree("")
            self._set_tree(tree, None, target.strategy)
            return
        spot, tables, iterations, locked = read_tree(path, self._threads)
        self.free_tree("")
        self._set_tree(spot.tree, SpotEngine(spot, tables, iterations))
        for name in locked:
            self.lock_node(name)

    # --- solving ---

    def go(self, text: str) -> None:
        """Prepare a solve to the set accuracy, of `100 steps` (iterations), or of at most `60 seconds`.

        It starts with the method `begin`, after the command's answer is written.
        """
        tree, engine = self._built(), self._solver()
        number, _, unit = text.strip().partition(" ")
        accuracy, share = self._accuracy
        goal = Goal(accuracy * (2 * tree.half if share else 1.0))
        if number:
            (count,) = _numbers(number, 1, "go takes a number of steps or seconds, or nothing")
            if unit.strip() not in ("steps", "seconds", ""):
                raise ValueError(f"go: {shown(unit)} is no unit: say steps or seconds")
            steps = unit.strip() == "steps"
            if steps and count % 1:
                raise ValueError(f"go: {number} is no whole number of steps")
            goal = Goal(goal.chips, int(count) if steps else None, None if steps else count)
        self._apply_locks()
        self._played = self._values = None
        self._work = SpotWork(engine, goal, self._say)

    def begin(self) -> None:
        """Start the solve that the command `go` has prepared, if any; called after each command."""
        if self._work is not None and self._work.thread is None:
            self._work.start()

    @property
    def solving(self) -> bool:
        """True while a solve is running."""
        return self._work is not None and self._work.running

    def stop(self, _: str) -> None:
        """Stop the running solve, if there is one, and wait for its end."""
        if self._work is not None:
            self._work.stop()

    def wait_for_solver(self, _: str) -> None:
        """Wait until the solve has ended."""
        if self._work is not None:
            self._work.wait()

    # --- queries about the tree ---

    def _built(self) -> SpotTree:
        if self._tree is None:
            raise ValueError("there is no tree: build_tree or load_tree comes first")
        return self._tree

    def _solver(self) -> SpotEngine:
        self._built()
        if self._engine is None:
            raise ValueError("this tree of a run or policy cannot be solved further: create one with build_tree")
        return self._engine

    def _strategy(self) -> Strategy:
        if self._played is None:
            self._played = self._solver().strategy()
        return self._played

    def _spot_values(self) -> SpotValues:
        if self._values is None:
            tree = self._built()
            self._values = SpotValues(tree, Profile(tree.game, self._strategy()))
        return self._values

    def _node(self, name: str) -> Node:
        return self._built().find(name)

    def show_node(self, text: str) -> str:
        """Return six lines on a node: name, kind, board, chips and pot, number of children, "flags:"."""
        tree = self._built()
        if text.strip() == _ROOT:
            return tree.text(Node(_ROOT, 0), _ROOT)
        return tree.text(tree.find(text))

    def show_children(self, text: str) -> str:
        """Return "child N:" and the six lines of `show_node`, such as name and board, for each child node."""
        tree = self._built()
        following = [Node("r:0", 0)] if text.strip() == _ROOT else tree.children(tree.find(text))
        return "\n\n".join(f"child {number}:\n{tree.text(child)}" for number, child in enumerate(following))

    def show_all_lines(self, _: str) -> str:
        """Return the names of all nodes of the betting tree, such as r:0:c:b94, one a line."""
        return "\n".join(self._built().lines())

    def show_board(self, _: str) -> str:
        """Return the board at the root."""
        return self._built().board_text(0, 0)

    def show_effective_stack(self, _: str) -> str:
        """Return the chips that each player has behind at the root."""
        return _number(self._built().behind)

    def show_tree_info(self, _: str) -> str:
        """Return board, pot and stacks at the root, in lines such as `#Pot#180`."""
        tree = self._built()
        known = {
            "Board": tree.board_text(0, 0),
            "Pot": _number(2 * tree.half),
            "EffectiveStacks": _number(tree.behind),
        }
        return "\n".join(f"#{key}#{value}" for key, value in known.items())

    def show_hand_order(self, _: str) -> str:
        """Return all 1,326 hands in the order in which other commands list their numbers."""
        return " ".join(combo_text(hand) for hand in range(COMBO_COUNT))

    def show_version(self, _: str) -> str:
        """Return the version of this program."""
        return VERSION

    def echo(self, text: str) -> str:
        """Return the command's text unchanged."""
        return text

    def show_range(self, text: str) -> str:
        """Return the weights of a player's hands at a node, `OOP r:0:c`; without a node, those of set_range."""
        position, _, name = text.strip().partition(" ")
        player = _position(position)
        if not name:
            typed = self._ranges[player]
            if typed is None:
                raise ValueError(f"there is no range of {position}: set_range {position} comes first")
            return _row(read_range(typed))
        return _row(self._spot_values().reach(self._node(name))[player])

    def _decision(self, text: str) -> Node:
        at = self._node(text)
        if self._built().decides(at) is None:
            raise ValueError(f"no player acts at {at.name}: give the name of a decision")
        return at

    def show_strategy(self, text: str) -> str:
        """Return each hand's probability of each action at a decision (`r:0:c`), one line for each action."""
        return "\n".join(_row(row) for row in self._spot_values().strategy(self._decision(text)))

    def set_strategy(self, text: str) -> None:
        """Set a decision's strategy until the next solve: `r:0`, then 1,326 probabilities for each action."""
        name, _, numbers = text.strip().partition(" ")
        at, tree = self._decision(name), self._built()
        actions = int(tree.tree.arrays.count[at.node])
        expected = f"set_strategy takes {actions * COMBO_COUNT} numbers at {name}, {COMBO_COUNT} for each child"
        rows = np.array(_numbers(numbers, actions * COMBO_COUNT, expected)).reshape(actions, COMBO_COUNT)
        block = int(tree.tree.arrays.block[at.node])
        buckets = tree.cards.bucket_row(block // 2, block % 2, at.board)
        live = buckets >= 0
        total = rows[:, live].sum(axis=0)
        if np.any(np.abs(total - 1) > _SUM_ERROR):
            hand = combo_text(int(np.flatnonzero(live)[np.argmax(np.abs(total - 1))]))
            raise ValueError(f"set_strategy: the probabilities of {hand} at {name} do not add up to 1")
        self._set(at, buckets[live], (rows[:, live] / total).T)

    def _set(self, at: Node, buckets: npt.NDArray[np.integer], rows: Floats) -> None:
        tree, played = self._built(), self._strategy()
        block, slot = int(tree.tree.arrays.block[at.node]), int(tree.tree.arrays.slot[at.node])
        blocks = list(played.blocks)
        if blocks[block].weight is not None or blocks[block].sums:
            blocks[block] = BlockRows(blocks[block].probabilities(row_starts(tree.game, block)).copy())
        blocks[block].cells[buckets, slot : slot + rows.shape[1]] = rows
        self._played, self._values = Strategy.stored(tree.game, blocks), None

    def lock_node(self, text: str) -> None:
        """Lock the strategy that `show_strategy` prints at a decision, so that further solving keeps it."""
        self._solver()
        at, tree = self._decision(text), self._built()
        block = int(tree.tree.arrays.block[at.node])
        buckets = tree.cards.bucket_row(block // 2, block % 2, at.board)
        live = buckets >= 0
        self._locked[at.name] = at.node, buckets[live], self._spot_values().strategy(at)[:, live].T
        self._locks_changed = True

    def unlock_node(self, text: str) -> None:
        """Unlock a decision (`r:0:c`), so that further solving changes its strategy."""
        self._solver()
        if self._locked.pop(self._decision(text).name, None) is not None:
            self._locks_changed = True

    def _apply_locks(self) -> None:
        """Tell the solver which decisions have a fixed strategy, if they have changed since the last time."""
        if self._locks_changed:
            self._solver().hold(self._locked.values())
            self._locks_changed, self._values = False, None

    # --- EV and equity ---

    def calc_ev(self, text: str) -> str:
        """Return two lines for a player at a node (`OOP r:0`): its hands' EVs and their matchup weights.

        An EV is the chips won from the pot, less those put in since the root. The matchup weight is the hand's reach
        weight times that of all opponent hands that it can meet.
        """
        player, name = self._of_player(text, "calc_ev")
        return _two(self._spot_values().ev(self._node(name)), player)

    def calc_eq_node(self, text: str) -> str:
        """Return three lines for a player at a node (`OOP r:0`): equities, matchup weights, mean equity.

        Equity is the share of the pot at a showdown without further bets. The matchup weight is the hand's reach weight
        times that of all opponent hands that it can meet.
        """
        player, name = self._of_player(text, "calc_eq_node")
        equities = self._spot_values().equity(self._node(name))
        return f"{_two(equities, player)}\n{_number(mean(equities, player))}"

    def calc_eq(self, text: str) -> str:
        """Return two lines for `OOP` or `IP` at the root: its hands' equities and their matchup weights.

        Equity is the share of the pot at a showdown without further bets. The matchup weight is the hand's reach weight
        times that of all opponent hands that it can meet.
        """
        return _two(self._spot_values().equity(self._node("r:0")), _position(text.strip()))

    def _of_player(self, text: str, command: str) -> tuple[int, str]:
        """Return (player number, node name) of a text such as `OOP r:0`; `command` is named in errors."""
        position, _, name = text.strip().partition(" ")
        if not name:
            raise ValueError(f"{command} takes OOP or IP, and a node: {command} OOP r:0")
        return _position(position), name

    def calc_global_freq(self, text: str) -> str:
        """Return the probability that both players' actions and the board cards lead to a node (`r:0:c`)."""
        return _number(self._spot_values().frequency(self._node(text)))

    def calc_matchups_line(self, text: str) -> str:
        """Return the sum of products of both players' reach weights over pairs of disjoint hands at a node."""
        return _number(float(self._spot_values().weight(self._node(text))[0].sum()))

    def calc_results(self, _: str) -> str:
        """Return both players' EVs, their best responses' EVs and the exploitability, in chips."""
        if self._engine is not None:
            self._apply_locks()
        tree, seconds = self._built(), self._engine.seconds if self._engine else 0.0
        return measure(tree.game, self._strategy(), self._threads).text(seconds)


def _position(text: str) -> int:
    if text not in POSITIONS:
        raise ValueError(f"{shown(text)} is no position: write OOP or IP")
    return POSITIONS.index(text)


def _path(text: str) -> Path:
    """Return the file path with which a command's text begins, quoted or not; further text has no effect."""
    text = text.strip()
    if text.startswith('"'):
        return Path(text[1:].partition('"')[0])
    name = text.partition(" ")[0]
    if not name:
        raise ValueError("the file name is missing: write it behind the command")
    return Path(name)


def _numbers(text: str, count: int, message: str) -> list[float]:
    """Return the `count` numbers in a text, finite and at least 0; otherwise `ValueError` with `message`."""
    try:
        numbers = [float(each) for each in text.split()]
    except ValueError:
        numbers = []
    if len(numbers) != count or not all(0 <= each < float("inf") for each in numbers):
        raise ValueError(message)
    return numbers


def _number(value: float) -> str:
    return f"{value:.{_DIGITS}g}"


def _row(values: Sequence[float] | Floats) -> str:
    return " ".join(map(_number, values))


def _two(numbers: HandNumbers, player: int) -> str:
    """Return two lines: the values of a player's 1,326 hands, and their weights."""
    return f"{_row(numbers.value[player])}\n{_row(numbers.weight[player])}"


Command = Callable[[UpiSession, str], str | None]
_ACCEPTED = (
    "add_info_line",
    "reset_tree_info",
    "set_recalc_accuracy",
    "set_always_recalc",
    "set_isomorphism",
    "set_info_freq",
    "set_algorithm",
    "reset_icm_tables",
    "small_strats",
    "is_ready",
    "load_all_nodes",
    "rebuild_forgotten_streets",
    "estimate_rebuild_forgotten_streets",
)
_NO_COMMANDS = "begin", "accept", "solving"
COMMANDS: dict[str, Command] = {
    **{name: made for name, made in vars(UpiSession).items() if not name.startswith("_") and name not in _NO_COMMANDS},
    **dict.fromkeys(_ACCEPTED, UpiSession.accept),
    "show_board_no_iso": UpiSession.show_board,
}
"""All commands but those of the conversation itself."""
WHILE_SOLVING = ("stop", "wait_for_solver", "is_ready", "echo", "show_version", "show_hand_order")
"""Commands that are allowed during a solve."""
