"""Abstraction recipes: a TOML file that states how each street's hands are put into buckets.

    seed = 0
    [flop]
    features = "histogram"
    buckets = 1000

A hand's strength is its equity on the river against a random opponent hand.  The features are:

* `lossless`: one bucket for each suit-isomorphism class (hands that differ only by a permutation of suits)
* `histogram`: clusters flop or turn hands by the distribution of their strength over the cards to come
* `potential`: clusters hands by their distribution over the next street's buckets
* `ehs`, `ehs2`: percentiles of the mean strength, or of the mean squared strength
* `ochs`: clusters river hands by their equities against clusters of opponent hands

Each bucket of a `nested` street lies inside one bucket of the street before (`abstraction.recall_buckets`).

With a table `[deck]` the recipe is for games with that small deck.  Its streets have the names of hold'em's from the
preflop on; the last street takes the features of the river.
"""

import tomllib
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from abstraction.small_deck_hands import DeckListing
from storage.damage import DamagedError, reading

STREETS = ("preflop", "flop", "turn", "river")
ALLOWED = {
    "preflop": ("lossless", "ehs"),
    "flop": ("lossless", "histogram", "potential", "ehs", "ehs2"),
    "turn": ("lossless", "histogram", "potential", "ehs", "ehs2"),
    "river": ("ochs", "ehs"),
}
"""Features that each street of hold'em can have."""
_ALLOWED_LAST = ("lossless", "ochs", "ehs")
_ALLOWED_BEFORE = ("lossless", "histogram", "ehs", "ehs2")
"""Features of the last street of a small deck, and of the streets before it."""
LOSSLESS_BUCKETS = {"preflop": 169, "flop": 1_286_792, "turn": 13_960_050, "river": 123_156_254}
"""Number of suit-isomorphism classes of hands."""
CLUSTERED = ("histogram", "potential", "ochs")
"""Features that are clustered by k-means."""
TWO_LEVELS_FROM = 5_000
"""Number of buckets from which a street is clustered in two levels by default."""
PERCENTILES = 1_000
"""Percentiles in the table of a street with history, which divide earlier buckets (`abstraction.recall_buckets`)."""
_MOST_BEFORE = 10_000
SAMPLE = 1_000_000
"""Least default sample of river hands; earlier streets have few distinct points and cluster all of them."""
SAMPLE_PER_BUCKET = 80
"""Default sample of river hands for each bucket, if that is more than `SAMPLE`."""
_DEFAULTS = {"bins": 50, "clusters": 8, "iterations": 40}
"""Values of keys that apply to the features but are not given."""
_COMMON = ("buckets", "distance", "sample", "iterations", "levels", "public", "nested")
_KEYS: dict[str, tuple[str, ...]] = {
    "lossless": (),
    "histogram": (*_COMMON, "bins"),
    "potential": _COMMON,
    "ehs": ("buckets",),
    "ehs2": ("buckets",),
    "ochs": (*_COMMON, "clusters"),
}
"""Keys of a stage's document, by features."""
_APPLY = _KEYS | {"lossless": ("buckets",)} | dict.fromkeys(("ehs", "ehs2"), ("buckets", "public", "nested"))
"""Keys that a street may have, by features; other keys are refused."""


class StreetRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of one street of an abstraction: features, number of buckets, and clustering.

    They are a table, such as [flop], of a recipe, the TOML file from which the abstraction is built.  None stands for a
    default, if the key applies to the features.  `buckets` has a default only for lossless features.
    """

    features: Literal["lossless", "histogram", "potential", "ehs", "ehs2", "ochs"]
    buckets: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None  # required unless lossless
    distance: Literal["emd", "l2"] | None = None  # default: emd for histogram and potential, l2 for ochs
    bins: Annotated[int, Meta(ge=2, le=1981)] | None = None  # bins of a histogram
    clusters: Annotated[int, Meta(ge=1, le=169)] | None = None  # clusters of opponent hands
    # hands drawn by weight for clustering, 0 for all; the others are assigned afterwards
    sample: Annotated[int, Meta(ge=0, le=2**40)] | None = None
    iterations: Annotated[int, Meta(ge=1, le=10**6)] | None = None  # maximum number of Lloyd's iterations
    levels: Literal[1, 2] | None = None  # 2: clusters groups first, then buckets within each group
    public: Annotated[int, Meta(ge=0, le=10_000)] = 0  # number of board clusters within which buckets lie
    nested: bool = False  # each bucket lies inside one bucket of the street before


class DeckRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A small deck: numbers of ranks, suits, hole cards, and board cards dealt on each street."""

    ranks: int
    suits: int
    hole_cards: int = 1
    board_cards: Sequence[int] = (0, 1)

    def listing(self) -> DeckListing:
        """Return the `DeckListing` of all hands and boards; `ValueError` for an invalid deck."""
        return DeckListing(self.ranks, self.suits, self.hole_cards, tuple(self.board_cards))


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings by which an abstraction is built, for hold'em or a small deck: one table per street.

    They are parsed from a TOML file.  The preflop is lossless by default: one bucket for each class of hands that
    differ only by a permutation of suits.
    """

    seed: Annotated[int, Meta(ge=0, lt=2**32)] = 0
    deck: DeckRecipe | None = None
    preflop: StreetRecipe = StreetRecipe(features="lossless")
    flop: StreetRecipe | None = None
    turn: StreetRecipe | None = None
    river: StreetRecipe | None = None

    @property
    def streets(self) -> tuple[str, ...]:
        """Names of the game's streets, in the order of play from "preflop" on."""
        return STREETS if self.deck is None else STREETS[: len(self.deck.board_cards)]

    def part(self, street: str) -> StreetRecipe:
        """Return the settings of a street, such as "flop"; `ValueError` if they are missing."""
        street_recipe: StreetRecipe | None = getattr(self, street)
        if street_recipe is None:
            raise ValueError(f"[{street}] is missing: the recipe needs {', '.join(self.streets[1:])}")
        return street_recipe


def load_recipe(path: Path) -> Recipe:
    """Parse a TOML file of an abstraction's settings as a `Recipe`, and check it.

    Raises `ValueError` in one sentence that names the file, the key and the allowed values; also if there is no file.
    Raises `UnreadableError` if the system cannot read it.
    """
    try:
        with reading(path):
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        recipe = msgspec.convert(document, Recipe)
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file; give a recipe, such as runs/abstractions/quick.toml") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, DamagedError) as error:
        raise ValueError(f"{path}: not a TOML file: {error}") from None
    except msgspec.ValidationError as error:
        raise ValueError(f"{path}: {str(error).replace('`', '')}") from None
    try:
        check_recipe(recipe)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return recipe


def check_recipe(recipe: Recipe) -> None:
    """Raise `ValueError`, which names the key and the allowed values, for settings that are not allowed."""
    if recipe.deck is not None:
        _check_deck(recipe)
    for street in recipe.streets:
        for is_problem, text in _problems(recipe, street, recipe.part(street)):
            if is_problem:
                raise ValueError(text)
    build_order(recipe)


def _problems(recipe: Recipe, street: str, part: StreetRecipe) -> Iterator[tuple[object, str]]:
    """Yield (True if a rule is violated, error message) for each rule on a street's settings.

    The caller stops at the first violated rule; the results of later rules have no meaning then.

    recipe  settings of all streets
    street  name of the street, such as "flop"
    part    its settings
    """
    small, features, buckets = recipe.deck is not None, part.features, part.buckets or 0
    lossless, most, allowed = LOSSLESS_BUCKETS[street], LOSSLESS_BUCKETS[street], ALLOWED[street]
    if recipe.deck is not None:  # a small deck has at most as many buckets as pairs of hand and board
        listing = recipe.deck.listing()
        most = len(listing.hands) * len(listing.boards[STREETS.index(street)])
        allowed = _ALLOWED_LAST if street == recipe.streets[-1] else _ALLOWED_BEFORE
    yield features not in allowed, f"{street}.features = {features!r} is not one of: {', '.join(allowed)}"
    if features == "lossless":
        yield small and buckets, f"{street}.buckets = {buckets}: leave it out, {street}.features are lossless"
        yield buckets not in (0, lossless), f"{street}.buckets = {buckets}: a lossless {street} has {lossless:,}"
    else:
        yield not buckets, f"{street}.buckets is missing: say how many, such as buckets = 200"
        sample = part.sample or buckets
        yield sample < buckets, f"{street}.sample = {sample} is below {street}.buckets = {buckets}"
    applied = _APPLY[features]
    for field in msgspec.structs.fields(StreetRecipe)[1:]:  # without `features`
        value = getattr(part, field.name)
        text = f"{value}".lower() if isinstance(value, bool) else repr(value)
        yield (
            value != field.default and field.name not in applied,
            f"{street}.{field.name} = {text} means nothing where {street}.features = {features!r}, which takes "
            f"{', '.join(applied)}: leave it out",
        )
    yield buckets > most, f"{street}.buckets = {buckets} is not allowed: the {street} has at most {most:,}"
    if part.public or part.nested:
        yield from _nesting_problems(recipe, street, part)
    if not small and street != STREETS[0]:
        yield from _history_problems(recipe, street, part)


def _nesting_problems(recipe: Recipe, street: str, part: StreetRecipe) -> Iterator[tuple[object, str]]:
    inside = f"{street}.public = {part.public}" if part.public else f"{street}.nested = true"
    few = f"and {street}.buckets = {part.buckets}"
    yield part.public and part.nested, f"{street}.public and {street}.nested cannot be combined: choose one of them"
    yield part.levels == 2, f"{inside} and {street}.levels = 2 cannot be combined: the nesting is the first level"
    yield part.nested and street == STREETS[0], f"{inside} is not allowed: there is no street before it"
    yield (part.buckets or 0) < part.public, f"{inside} needs at least {part.public} buckets, {few}"


def _history_problems(recipe: Recipe, street: str, part: StreetRecipe) -> Iterator[tuple[object, str]]:
    """Yield (True if a rule is violated, error message) for the rules on two consecutive streets.

    They are the rules of hold'em's nested streets, each of whose buckets lies inside one bucket of the street before.
    A street after one with perfect recall must be nested too.

    recipe  settings of all streets
    street  name of the later street; `part` are its settings
    """
    before, buckets, nested = STREETS[STREETS.index(street) - 1], part.buckets or 0, f"{street}.nested = true"
    count = bucket_count(recipe, before)
    if remembers(recipe, street):
        features = part.features
        yield features[:3] != "ehs", f"{nested} needs {street}.features = 'ehs' or 'ehs2', not {features!r}"
        yield (
            count > _MOST_BEFORE or buckets % count,
            f"{street}.buckets = {buckets} cannot be nested in the {before}'s {count:,}: it must be a multiple of "
            f"them, and they at most {_MOST_BEFORE:,}",
        )
    else:
        few = part.nested and buckets < count
        yield few, f"{nested} needs at least {count} buckets, and {street}.buckets = {buckets}"
        text = f"{before}.nested = true needs {nested}: all streets from one on remember"
        yield remembers(recipe, before), text


def _check_deck(recipe: Recipe) -> None:
    assert recipe.deck is not None
    streets = len(recipe.deck.board_cards)
    if not 1 <= streets <= len(STREETS):
        raise ValueError(f"deck.board_cards has {streets} streets: 1 to {len(STREETS)} are allowed")
    try:
        recipe.deck.listing()
    except ValueError as error:
        raise ValueError(f"deck: {error}") from None
    for street in STREETS[streets:]:
        if getattr(recipe, street) is not None:
            raise ValueError(f"[{street}] is not allowed: deck.board_cards has {streets} streets")


def remembers(recipe: Recipe, street: str) -> bool:
    """Return whether a street has a history: a map of (bucket on the street before, percentile) to bucket.

    These are nested streets of hold'em, except a flop nested in the 169 preflop classes.
    """
    lossless = street == "flop" and recipe.preflop.features == "lossless"
    return recipe.deck is None and recipe.part(street).nested and not lossless


def bucket_count(recipe: Recipe, street: str) -> int:
    """Return the number of buckets that a hold'em recipe gives a street; 0 if the needed key is missing."""
    part = recipe.part(street)
    return LOSSLESS_BUCKETS[street] if part.features == "lossless" else part.buckets or 0


def stage_document(recipe: Recipe, street: str) -> dict[str, Any]:
    """Return {name: value} of the settings that determine a street's buckets, defaults included.

    Buckets depend on these settings and on the buckets of other streets (`parent_streets`) alone.  So a street is not
    built again if both are unchanged.
    """
    part, small = recipe.part(street), recipe.deck is not None
    document: dict[str, Any] = {"street": street, "features": part.features}
    for key in _KEYS[part.features]:
        value = getattr(part, key)
        document[key] = _DEFAULTS.get(key) if value is None else value
    if recipe.deck is not None:
        document["deck"] = {**msgspec.to_builtins(recipe.deck), "board_cards": list(recipe.deck.board_cards)}
        document["nested"] = part.nested
    if part.features not in CLUSTERED:
        if part.public:
            return document | {"public": part.public, "seed": recipe.seed}
        if remembers(recipe, street):
            return document | {"percentiles": PERCENTILES, "seed": recipe.seed}
        return document | ({"nested": True} if part.nested else {})
    buckets = part.buckets or 0  # not None: `check_recipe` requires it
    if part.distance is None:
        document["distance"] = "l2" if part.features == "ochs" else "emd"
    if part.sample is None:
        document["sample"] = max(SAMPLE, SAMPLE_PER_BUCKET * buckets) if street == "river" and not small else 0
    if part.levels is None:
        large = buckets >= TWO_LEVELS_FROM and not (part.public or part.nested)
        document["levels"] = 2 if large else 1
    return document | {"seed": recipe.seed}


def next_street(recipe: Recipe, street: str) -> str | None:
    """Return the next street if the features of `street` are "potential", else None.

    These features describe a hand by its distribution over the next street's buckets.
    """
    return STREETS[STREETS.index(street) + 1] if recipe.part(street).features == "potential" else None


def street_before(recipe: Recipe, street: str) -> str | None:
    """Return the street before if each bucket of `street` lies inside one bucket of it, else None.

    The result is also None for a hold'em flop within the 169 preflop classes: they need no built buckets.
    """
    nested = recipe.part(street).nested if recipe.deck is not None else remembers(recipe, street)
    return STREETS[STREETS.index(street) - 1] if nested else None


def parent_streets(recipe: Recipe, street: str) -> list[str]:
    """Return the names of the adjoining streets from whose buckets a street is built.

    They are the result of `next_street` and that of `street_before`, without None: zero, one or two streets.
    """
    return [other for other in (next_street(recipe, street), street_before(recipe, street)) if other is not None]


def build_order(recipe: Recipe) -> list[str]:
    """Return the names of all streets of a recipe in an order in which they can be built.

    A street comes after those from whose buckets it is built.  Raises `ValueError` if streets need each other.
    """
    try:
        return list(TopologicalSorter({each: parent_streets(recipe, each) for each in recipe.streets}).static_order())
    except CycleError as error:
        raise ValueError(
            f"{' and '.join(sorted(set(error.args[1])))}: one is nested in the other, whose features describe hands by "
            "the first one's buckets: each would have to be built first; leave one of the two out"
        ) from None
