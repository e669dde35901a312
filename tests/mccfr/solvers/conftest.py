"""Leduc, and Leduc on buckets, which files of tests share."""

import pytest

from abstraction.buckets import Abstraction
from abstraction.build import Builder
from abstraction.recipe import DeckRecipe, Recipe, StreetRecipe
from mccfr.config.game_tables import LeducGame
from mccfr.games.bucketed import bucketed
from mccfr.games.registry import build_game


@pytest.fixture(scope="module")
def leduc():
    return build_game(LeducGame(), None)


@pytest.fixture(scope="module")
def coarse(leduc, tmp_path_factory):
    """On two buckets before the board, and two after it."""
    path = tmp_path_factory.mktemp("buckets")
    streets = {"preflop": StreetRecipe(features="ehs", buckets=2), "flop": StreetRecipe(features="ehs", buckets=2)}
    Builder(Recipe(deck=DeckRecipe(ranks=3, suits=2), **streets), path).build()
    return bucketed(leduc, Abstraction(path))
