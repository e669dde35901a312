"""Leduc, and Leduc on buckets, which files of tests share."""

import pytest

import mccfr
from abstraction.buckets import Abstraction
from abstraction.build import Builder
from abstraction.recipe import DeckRecipe, Recipe, StreetRecipe
from mccfr.games.bucketed import bucketed


@pytest.fixture(scope="module")
def leduc():
    return mccfr.game("leduc")


@pytest.fixture(scope="module")
def coarse(leduc, tmp_path_factory):
    """On two buckets before the board, and two after it."""
    path = tmp_path_factory.mktemp("buckets")
    streets = {"preflop": StreetRecipe(features="ehs", buckets=2), "flop": StreetRecipe(features="ehs", buckets=2)}
    Builder(Recipe(deck=DeckRecipe(ranks=3, suits=2), **streets), path).build()
    return bucketed(leduc, Abstraction(path))
