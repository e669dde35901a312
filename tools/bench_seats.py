"""`tools/bench seats`: speed of external sampling with three to six players, beside C.

The C program has the same loop.  Both sides walk the same betting tree of hold'em with simulated deals, in turn.  Each
turn gives a ratio of nodes per second of processor time, so that other programs on the machine do not distort it.
"""

import json
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt
import rich_click as click
from bench_kernel import BATCH_DEALS, BATCH_NODES, PREFLOP_BUCKETS, WARM_SECONDS, BettingGame, random_numbers
from bench_pairs import half_width
from bench_processor import compiled, machine, make_kernels_for, march_option

from abstraction.kernels.jit import njit
from mccfr.cards.deals import new_deals
from mccfr.common.rng import new_stream, uniform
from mccfr.games.betting import BettingRules, BettingState
from mccfr.games.betting_tree import build_tree
from mccfr.solvers.sampling.external.external_packed import external_sampling_packed, new_packed_worklist
from mccfr.tables.table_layout import make_layout, private_tables
from mccfr.trees.compiled import pack, pack_pots

STACK, SMALL_BLIND, BIG_BLIND = 10_000, 50, 100
MOST_BETS = {3: (3, 2, 2, 2), 4: (2, 1, 1, 1), 5: (2, 1, 1, 0), 6: (1, 1, 0, 0)}
"""Most bets on each street, by number of players."""
YARDSTICK = Path(__file__).with_name("seats_yardstick.c")


def betting_game(players: int, buckets: int) -> BettingGame:
    """Return the game of bets of the pot, with stacks of 100 big blinds.

    buckets  number after the first street
    """
    most = MOST_BETS[players]

    def targets(state: BettingState) -> list[float]:
        if state.bets >= most[state.street]:
            return []
        level = state.to_call
        return [min(STACK, level + sum(state.put_in) + level - state.put_in[state.player])]

    blinds = (SMALL_BLIND, BIG_BLIND, *[0] * (players - 2))
    rules = BettingRules(blinds, (2, 0, 0, 0), targets, STACK, BIG_BLIND, (0, 3, 1, 1))
    return BettingGame(build_tree(rules), np.repeat([PREFLOP_BUCKETS, *[buckets] * 3], players))


@njit
def _reflected(x):
    x = -x if x < 0 else x
    return 1.9999999 - x if x >= 1 else x


@njit
def simulated_deals(rng, buckets, deals):
    """Fill a batch of deals in place: a hidden strength for each player, with noise on earlier streets."""
    players = deals.strength.shape[1]
    for k in range(deals.bucket.shape[0]):
        for player in range(players):
            seen = uniform(rng)
            deals.strength[k, player] = np.int32(seen * 1e9)
            for street in range(3, -1, -1):
                block = players * street + player
                if street < 3:
                    seen = _reflected(seen + (0.3 if street > 0 else 0.4) * (uniform(rng) - 0.5))
                deals.bucket[k, block] = np.int32(seen * buckets[block])


class SeatTraining:
    """Runs batches of iterations on tables of random numbers.

    tree_file  receives the same game for the C program
    """

    def __init__(self, game: BettingGame, tree_file: Path) -> None:
        tables = private_tables(make_layout(game))  # type: ignore[arg-type]
        assert tables.kernel is not None
        self._arrays, self._tree, self._buckets = tables.kernel, pack(game.tree), game.buckets
        cells = self._arrays.regret
        random_numbers(new_stream(0, 0), cells)
        self._scratch = new_packed_worklist(game.tree, cells.dtype)
        self._rng, self._deal_rng = new_stream(1, 0), new_stream(2, 0)
        self._deals = new_deals(BATCH_DEALS, 4, game.tree.players)
        self._next = BATCH_DEALS
        pots, arrays = pack_pots(game.tree), self._arrays
        head = np.array([len(self._tree), len(pots), game.tree.streets, len(cells), BATCH_NODES, 0, 0, 0], np.int64)
        blocks = np.column_stack([arrays.regret_base, arrays.sum_base, arrays.width, game.buckets])
        with tree_file.open("wb") as file:
            for each in (head, self._tree, pots, blocks):
                file.write(each.tobytes())

    def run(self) -> int:
        """Run a batch; return the nodes touched."""
        if self._next == BATCH_DEALS:
            simulated_deals(self._deal_rng, self._buckets, self._deals)
            self._next = 0
        limits = np.array([self._next, BATCH_DEALS, BATCH_NODES])
        iterations, nodes = external_sampling_packed(
            self._tree, self._arrays, self._deals, limits, 1.0, self._rng, self._scratch
        )
        self._next += int(iterations)
        return int(nodes)

    def nodes_per_second(self, seconds: float) -> float:
        """Return nodes per second of processor time, after a warm-up."""
        end = time.perf_counter() + WARM_SECONDS
        while time.perf_counter() < end:
            self.run()
        nodes, began, spent = 0, time.process_time(), 0.0
        while spent < seconds:
            nodes += self.run()
            spent = time.process_time() - began
        return nodes / spent


def _theirs(program: Path, tree_file: Path, seconds: float) -> float:
    """Return nodes per second of processor time of the C program."""
    found = subprocess.run([program, tree_file, str(seconds)], check=True, stdout=subprocess.PIPE)
    return float(json.loads(found.stdout)["nodes_per_second"])


def _line(players: int, nodes: int, ours: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> str:
    ratios = (ours / other).tolist()
    return (
        f"{players} players, tree of {nodes:,} nodes: {median(ours) / 1e6:.1f} M nodes/s; ratio to C "
        f"{median(ratios):.3f} ± {half_width(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f}, {len(ratios)} pairs)"
    )


@click.command()
@click.option(
    "--players", multiple=True, type=click.IntRange(3, 6), default=(3, 6), show_default=True, help="May be repeated."
)
@click.option("--buckets", default=200, show_default=True, help="Buckets on flop, turn and river.")
@click.option("--rounds", type=click.IntRange(2), default=11, show_default=True, help="Pairs that are taken.")
@click.option("--seconds", default=3.0, show_default=True, help="Length of each measurement.")
@march_option
def seats(players: tuple[int, ...], buckets: int, rounds: int, seconds: float, march: str) -> None:
    """Nodes per second with three to six players, in turn with a C program of the same loop; needs gcc."""
    try:
        make_kernels_for(march)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"{machine()}; both for {march}")
    with tempfile.TemporaryDirectory() as directory:
        for count in players:
            options = (f"-march={march}", f"-DSEATS={count}")
            program = compiled(YARDSTICK, Path(directory) / f"yardstick{count}", options)
            game, tree_file = betting_game(count, buckets), Path(directory) / "tree"
            player = SeatTraining(game, tree_file)
            rates = [(player.nodes_per_second(seconds), _theirs(program, tree_file, seconds)) for _ in range(rounds)]
            click.echo(_line(count, game.tree.nodes, *np.array(rates).T))
