"""Threads that share walks of a public tree: what they share, and that nobody waits for one that fails."""

import threading

import numpy as np
import pytest
from places import RUNS
from refusals import refused

from mccfr.config.games import HoldemSubgame, Menu
from mccfr.games.catalogue import build_game
from mccfr.solvers.public.public_tree import public_tree
from mccfr.solvers.public.public_walk import Scope, value
from mccfr.solvers.public.street_arrays import Views, new_scratch, no_tables, street_tables
from mccfr.solvers.public.walk_threads import shares_by_cost, walk_together
from mccfr.trees.streets import AT_EXIT

GAME = build_game(HoldemSubgame(file="games/turn.txt", menu=Menu(first=("1p", "allin"), later=("allin",))), RUNS)


@pytest.mark.parametrize("apart", [True, False])
def test_every_task_is_in_one_share(apart):
    """By itself, the dearest first; all boards of an exit together where rows are on several of them."""
    public = public_tree(GAME)
    shares = shares_by_cost(public, rows_apart=apart).tolist()
    tasks = [range(first, stop) for first, stop in sorted(shares)]
    assert [task for share in tasks for task in share] == list(range(len(public.tasks)))
    exits = [public.tasks[list(share), 0] for share in tasks if public.trees.kind[public.tasks[share[0], 0]] == AT_EXIT]
    assert exits
    assert all(len(set(members)) == 1 for members in exits)
    assert len({int(members[0]) for members in exits}) * (4 if apart else 1) == len(exits)


class Together:
    """Walks of a uniform strategy by three threads."""

    def __init__(self) -> None:
        self.public = public = public_tree(GAME)
        tables = [
            np.full((max(1, int(GAME.tree.row_slots[block])), int(GAME.buckets[block])), 0.5) for block in range(4)
        ]
        nothing = no_tables(np.float64)
        self.views = tuple(Views(nothing, street_tables(tables, player), nothing) for player in range(2))
        self.root = new_scratch(public, range(1), np.float64, 2)
        self.scratches = [new_scratch(public, range(1, 2), np.float64, 2) for _ in range(3)]
        self.came: list[bool] = []

    def walk(self, crew, scratch) -> None:
        scope = Scope(0, 1, *self.public.boards.root.tolist())
        value(self.public, self.views, scope, self.root, scratch, crew)
        self.came.append(crew.leads)


@pytest.mark.parametrize("leads", [True, False])
def test_nobody_waits_for_a_thread_that_fails_before_it_begins(leads):
    """The leader's failure ends the others, who wait; work of one that is missing is done by others."""
    together = Together()
    waiting = threading.Event()

    def work(crew, scratch) -> None:
        if crew.leads == leads:
            if leads:
                assert waiting.wait(60)
            raise RuntimeError("no room")
        if leads and not waiting.is_set():
            waiting.set()
        together.walk(crew, scratch)

    refused("no room", walk_together, work, shares_by_cost(together.public), together.scratches, error=RuntimeError)
    assert together.came == ([False] * 2 if leads else [True])
    found = together.root.by_hand.value[0] @ together.public.reach[0]
    assert np.any(found) == (not leads)
