"""Fixtures of the solver tests: Leduc, and Leduc with card buckets."""

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
    """Return Leduc with two buckets on each street."""
    path = tmp_path_factory.mktemp("buckets")
    streets = {"preflop": StreetRecipe(features="ehs", buckets=2), "flop": StreetRecipe(features="ehs", buckets=2)}
    Builder(Recipe(deck=DeckRecipe(ranks=3, suits=2), **streets), path).build()
    return bucketed(leduc, Abstraction(path))
