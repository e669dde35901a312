"""A learned baseline for outcome sampling: DREAM's (Steinberger, Lerer & Brown 2020, section 4).

A network says what every action is worth to the player who acts, from what both players hold: it serves to take
variance out of samples and never to act, so it may see the other hand.  It is fitted by expected SARSA: an action is
worth the chips at the end where the hand ends, and else what the strategy that is played makes of the network's own
values at the next decision; the values of the newest traversals are kept, in a ring.  DREAM has a network of each
player's values; here one serves both, since in a game that sums to zero one's are the other's with the sign turned.

An iteration's traversals of a player ask the network as it stands, and it is fitted when they are done: no sample sees
a baseline that has seen its own deal.  Until its first fit it says 0.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.config.solvers import DeepCfrConfig
from mccfr.games.game import Game
from mccfr.rng import MINIBATCH, PARAMETERS, new_stream
from mccfr.solvers.deep.features import features, hand_columns
from mccfr.solvers.deep.fitting import Batch, fit
from mccfr.solvers.deep.infosets import Infosets, list_infosets
from mccfr.solvers.deep.learned import BASELINE_STREAM, Tables, descent
from mccfr.solvers.deep.memory import Walk
from mccfr.solvers.deep.network import Array, plain
from mccfr.solvers.deep.outcome_paths import Paths
from storage.schema import ArraySpec


class Transitions(NamedTuple):
    """Actions that were taken, and what they led to.  n of them.

    infoset  [n] int64    of who acted, in the list of both players
    hand     [n] int64    of the other player, in the list of all hands on all streets
    action   [n] int64
    value    [n] float64  chips for who acted
    """

    infoset: npt.NDArray[np.int64]
    hand: npt.NDArray[np.int64]
    action: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]


class _Shown:
    """Inputs of the network: what who acts sees, and the other one's hand."""

    def __init__(self, game: Game, infosets: Infosets) -> None:
        found = [features(game, infosets, player).values for player in range(2)]
        if found[0] is None or found[1] is None:
            raise ValueError(
                f"solver.baseline = 'learned' sees cards and bets, and {game.name} has none that are named: use 'none'"
            )
        self._seen = np.concatenate([found[0], found[1]])
        hands = [hand_columns(game, block) for block in range(2 * game.tree.streets)]
        self._hands = np.concatenate(hands)
        self._first = np.cumsum([0, *(len(rows) for rows in hands)])
        self._block = game.tree.arrays.block.astype(np.int64)
        self.width = self._seen.shape[1] + self._hands.shape[1]

    def hands(self, node: npt.NDArray[np.int64], bucket: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """[n] which of all hands the buckets are that the other player holds at decisions."""
        return self._first[self._block[node] ^ 1] + bucket

    def take(self, infoset: npt.NDArray[np.integer], hand: npt.NDArray[np.integer]) -> Array:
        """[n, F] inputs."""
        return np.concatenate([self._seen[infoset], self._hands[hand]], axis=1)

    def known(self, infoset: npt.NDArray[np.integer], hand: npt.NDArray[np.integer]) -> bool:
        """Whether there are such infosets and hands."""
        return all(
            0 <= int(rows.min(initial=0)) <= int(rows.max(initial=0)) < len(table)
            for rows, table in ((infoset, self._seen), (hand, self._hands))
        )


class _Batches:
    """Minibatches of what is kept: a `mccfr.solvers.deep.fitting.Batches` whose loss is of the actions taken."""

    def __init__(self, shown: _Shown, kept: Transitions, batch: int, actions: int, start: int) -> None:
        self.weight = float(batch)
        self._shown, self._kept, self._walk = shown, kept, Walk(len(kept.value), start)
        self._batch, self._actions = batch, actions

    def next(self) -> Batch:
        """As `Batches.next`."""
        numbers, kept = self._walk.take(self._batch), self._kept
        taken = np.eye(self._actions, dtype=np.float32)[kept.action[numbers]]
        total = taken * kept.value[numbers].astype(np.float64)[:, None]
        return Batch(self._shown.take(kept.infoset[numbers], kept.hand[numbers]), np.ones(self._batch), total, taken)


def baseline_specs(game: Game, config: DeepCfrConfig, dtype: str) -> list[ArraySpec]:
    """Names, shapes and dtypes of its tables; `ValueError` in a game without cards that have names."""
    infosets = list_infosets(game)
    size = plain(_Shown(game, infosets).width, infosets.width, config.layers, config.units).size
    shape = (config.baseline_memory,)
    return [
        ArraySpec("baseline/parameters", (size,), "float32", ("parameter",)),
        ArraySpec("baseline/counter", (1,), "int64", ("counter",)),
        ArraySpec("baseline_memory/infoset", shape, "int32", ("sample",)),
        ArraySpec("baseline_memory/hand", shape, "int32", ("sample",)),
        ArraySpec("baseline_memory/action", shape, "uint8", ("sample",)),
        ArraySpec("baseline_memory/value", shape, dtype, ("sample",)),
    ]


class LearnedBaseline:
    """The baseline of a run, on its tables, which are changed in place."""

    def __init__(self, game: Game, infosets: Infosets, config: DeepCfrConfig, tables: Tables) -> None:
        """`ValueError` for tables that no run writes."""
        self._config, self._infosets, self._shown = config, infosets, _Shown(game, infosets)
        self._network = plain(self._shown.width, infosets.width, config.layers, config.units)
        self._sign = 1.0 - 2.0 * game.tree.arrays.player
        self._parameters, self._counter = tables["baseline/parameters"], tables["baseline/counter"]
        self._memory = Transitions(*(tables[f"baseline_memory/{name}"] for name in Transitions._fields))
        kept = self._kept()
        if int(self._counter[0]) < 0:
            raise ValueError("baseline/counter counts below 0: no run writes such a table")
        if not self._shown.known(kept.infoset, kept.hand) or (kept.action >= infosets.width).any():
            raise ValueError(f"baseline_memory names infosets, hands or actions that {game.name} has not")

    def values(self, paths: Paths, count: int) -> npt.NDArray[np.float64]:
        """[count, A] what every action is worth to player 0 at the first decisions of `paths`; 0 where there is none.

        Before the first fit all are 0.
        """
        if not self._counter[0]:
            return np.zeros((count, self._infosets.width))
        node, infoset = paths.node[:count], paths.infoset[:count]
        given = self._shown.take(infoset, self._shown.hands(node, paths.bucket[:count]))
        found = self._network.forward(self._parameters, given)[-1]
        worth: npt.NDArray[np.float64] = found * self._infosets.legal[infoset] * self._sign[node][:, None]
        return worth

    def transitions(self, paths: Paths, ahead: npt.NDArray[np.float64]) -> Transitions:
        """What is to be learnt of paths, whose actions led to `ahead` [n] chips for player 0."""
        count = len(ahead)
        node, infoset, action = (column[:count].copy() for column in (paths.node, paths.infoset, paths.action))
        return Transitions(infoset, self._shown.hands(node, paths.bucket[:count]), action, ahead * self._sign[node])

    def remember(self, found: Transitions) -> None:
        """Keep transitions in the place of the oldest."""
        room, offered, count = len(self._memory.value), int(self._counter[0]), len(found.value)
        newest = slice(max(0, count - room), count)
        places = (offered + np.arange(count)[newest]) % room
        for table, column in zip(self._memory, found, strict=True):
            table[places] = column[newest]
        self._counter[0] = offered + count

    def fit(self, number: int) -> None:
        """Fit the network to what is kept; number: of the fit, from 0."""
        config = self._config
        if not number:
            self._parameters[:] = self._network.initial(new_stream(config.seed, BASELINE_STREAM, PARAMETERS))
        start = int(new_stream(config.seed, BASELINE_STREAM, MINIBATCH, number)[0])
        batches = _Batches(self._shown, self._kept(), config.baseline_batch, self._infosets.width, start)
        fit(self._network, self._parameters, batches, descent(config, config.baseline_steps))

    def _kept(self) -> Transitions:
        held = min(int(self._counter[0]), len(self._memory.value))
        memory = self._memory
        return Transitions(memory.infoset[:held], memory.hand[:held], memory.action[:held], memory.value[:held])
