"""Recipes: one TOML file says how each street's hands are put into buckets.

    seed = 0
    [flop]
    features = "histogram"      # lossless | histogram | ehs | ehs2 | ochs
    buckets = 1000

`lossless` keeps every class of hands apart (preflop only); `histogram` describes a flop or turn hand by the
distribution of its river strength; `ehs` and `ehs2` by its mean or mean square, cut at percentiles; `ochs` describes a
river hand by its equity against clusters of opponent hands.
"""

import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

STREETS = ("preflop", "flop", "turn", "river")
ALLOWED = {
    "preflop": ("lossless",),
    "flop": ("histogram", "ehs", "ehs2"),
    "turn": ("histogram", "ehs", "ehs2"),
    "river": ("ochs", "ehs"),
}
"""Features that each street can have."""
_LIMITS = {
    "buckets": (1, 2**31),
    "bins": (2, 1981),
    "clusters": (1, 169),
    "sample": (1, 2**31),
    "iterations": (1, 10**6),
}


class StreetRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One street.  Defaults: lossless preflop; histograms with earth mover's distance; OCHS with L2 on the river."""

    features: Literal["lossless", "histogram", "ehs", "ehs2", "ochs"]
    buckets: int = 169
    distance: Literal["emd", "l2"] | None = None  # None: emd for histograms, l2 for ochs
    bins: int = 50  # of a histogram
    clusters: int = 8  # of opponent hands
    sample: int = 200_000  # distinct points that are clustered; all are assigned
    iterations: int = 40  # of Lloyd's algorithm, at most


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole abstraction."""

    seed: int = 0
    preflop: StreetRecipe = StreetRecipe(features="lossless")
    flop: StreetRecipe
    turn: StreetRecipe
    river: StreetRecipe


def load_recipe(path: Path) -> Recipe:
    """Read a recipe; `ValueError` of one sentence naming the file, the key and what is allowed."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        recipe = msgspec.convert(document, Recipe)
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file; give a recipe, such as runs/abstractions/quick.toml") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, IsADirectoryError) as error:
        raise ValueError(f"{path}: not a TOML file: {error}") from None
    except msgspec.ValidationError as error:
        raise ValueError(f"{path}: {str(error).replace('`', '')}") from None
    for street in STREETS:
        _check(path, street, getattr(recipe, street))
    if not 0 <= recipe.seed < 2**32:
        raise ValueError(f"{path}: seed = {recipe.seed} is not allowed: it must be 0 to 2**32 - 1")
    return recipe


def _check(path: Path, street: str, part: StreetRecipe) -> None:
    if part.features not in ALLOWED[street]:
        raise ValueError(f"{path}: {street}.features = {part.features!r} is not one of: {', '.join(ALLOWED[street])}")
    for key, (low, high) in _LIMITS.items():
        value = getattr(part, key)
        if not low <= value <= high:
            raise ValueError(f"{path}: {street}.{key} = {value} is not allowed: it must be {low:,} to {high:,}")
    if part.features == "lossless" and part.buckets != 169:
        raise ValueError(f"{path}: {street}.buckets = {part.buckets}: lossless hole cards have 169 buckets")
    if part.sample < part.buckets:
        raise ValueError(f"{path}: {street}.sample = {part.sample} is below {street}.buckets = {part.buckets}")


def stage_document(recipe: Recipe, street: str) -> dict[str, Any]:
    """What decides a street's buckets, and nothing else: two recipes that agree here share the stage."""
    part = getattr(recipe, street)
    keys = {
        "lossless": (),
        "histogram": ("buckets", "distance", "bins", "sample", "iterations"),
        "ehs": ("buckets",),
        "ehs2": ("buckets",),
        "ochs": ("buckets", "distance", "clusters", "sample", "iterations"),
    }[part.features]
    document: dict[str, Any] = {"street": street, "features": part.features}
    document.update({key: getattr(part, key) for key in keys})
    if "distance" in document and document["distance"] is None:
        document["distance"] = "emd" if part.features == "histogram" else "l2"
    return document | ({"seed": recipe.seed} if "sample" in document or part.features == "ochs" else {})
