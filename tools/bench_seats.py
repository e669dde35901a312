"""`tools/bench seats`: speed of external sampling with three to six players, compared with C.

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
from bench_kernel import (
    BATCH_NODES,
    PREFLOP_BUCKETS,
    WARM_SECONDS,
    BettingGame,
    TimedPlayer,
    random_numbers,
    table_layout,
)
from bench_pairs import half_width
from bench_processor import compiled, machine, make_kernels_for, march_option

from mccfr.common.rng import new_stream
from mccfr.games.betting import BettingRules, BettingState
from mccfr.games.betting_tree import build_tree
from mccfr.tables.table_layout import TableArrays, private_tables
from mccfr.trees.compiled import pack, pack_pots

STACK, SMALL_BLIND, BIG_BLIND = 10_000, 50, 100
MOST_BETS = {3: (3, 2, 2, 2), 4: (2, 1, 1, 1), 5: (2, 1, 1, 0), 6: (1, 1, 0, 0)}
"""Most bets on each street, by number of players."""
YARDSTICK = Path(__file__).with_name("seats_yardstick.c")


def betting_game(players: int, buckets: int) -> BettingGame:
    """Return a game with pot-sized bets and stacks of 100 big blinds.

    buckets  number of buckets on each later street
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


def write_game(game: BettingGame, arrays: TableArrays, tree_file: Path) -> None:
    """Write a game and the offsets of its tables for the C program."""
    tree, pots = pack(game.tree), pack_pots(game.tree)
    cells = len(arrays.regret)
    head = np.array([len(tree), len(pots), game.tree.streets, cells, BATCH_NODES, 0, 0, 0], np.int64)
    blocks = np.column_stack([arrays.regret_base, arrays.sum_base, arrays.width, game.buckets])
    with tree_file.open("wb") as file:
        for each in (head, tree, pots, blocks):
            file.write(each.tobytes())


def _ours(player: TimedPlayer, seconds: float) -> float:
    """Return nodes per second of processor time, after a warm-up."""
    end = time.perf_counter() + WARM_SECONDS
    while time.perf_counter() < end:
        player.run()
    nodes, began, spent = 0, time.process_time(), 0.0
    while spent < seconds:
        nodes += int(player.run()[0])
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
@click.option("--rounds", type=click.IntRange(2), default=11, show_default=True, help="Number of measured pairs.")
@click.option("--seconds", default=3.0, show_default=True, help="Length of each measurement.")
@march_option
def seats(players: tuple[int, ...], buckets: int, rounds: int, seconds: float, march: str) -> None:
    """Measure nodes per second with three to six players, in turn with a C program; needs gcc."""
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
            arrays = private_tables(table_layout(game)).kernel
            assert arrays is not None
            random_numbers(new_stream(0, 0), arrays.regret)
            write_game(game, arrays, tree_file)
            player = TimedPlayer("external", game, arrays, 0)
            rates = [(_ours(player, seconds), _theirs(program, tree_file, seconds)) for _ in range(rounds)]
            click.echo(_line(count, game.tree.nodes, *np.array(rates).T))
