"""Abstraction recipes: a TOML file that states how each street's hands are put into buckets.

    seed = 0
    [flop]
    features = "histogram"
    buckets = 1000

* `lossless`: one bucket for each suit-isomorphism class of hands
* `histogram`: clusters flop or turn hands by the distribution of their river strength
* `potential`: clusters hands by their distribution over the next street's buckets
* `ehs`, `ehs2`: percentiles of the mean strength, or of the mean squared strength
* `ochs`: clusters river hands by their equities against clusters of opponent hands

Each bucket of a `nested` street lies inside one bucket of the street before (`abstraction.recall_buckets`).

With a table `[deck]` the recipe is for games with that small deck.  Its streets have the names of hold'em's from the
preflop on; the last street takes the features of the river.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

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
_ALLOWED_BEFORE = ("lossless", "histogram", "potential", "ehs", "ehs2")
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
_LIMITS = {
    "buckets": (1, 2**31 - 1),
    "bins": (2, 1981),
    "clusters": (1, 169),
    "sample": (0, 2**40),
    "iterations": (1, 10**6),
    "levels": (1, 2),
    "public": (0, 10_000),
}
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
    """One street.

    None stands for a default that `stage_document` fills in if the key applies to the features.
    """

    features: Literal["lossless", "histogram", "potential", "ehs", "ehs2", "ochs"]
    buckets: int | None = None  # required unless lossless
    distance: Literal["emd", "l2"] | None = None  # default: emd for histogram and potential, l2 for ochs
    bins: int | None = None  # bins of a histogram
    clusters: int | None = None  # clusters of opponent hands
    sample: int | None = None  # hands drawn by weight for clustering, 0 for all; the others are assigned afterwards
    iterations: int | None = None  # maximum number of Lloyd's iterations
    levels: int | None = None  # 2: clusters groups first, then buckets within each group
    public: int = 0  # number of board clusters within which buckets lie
    nested: bool = False  # each bucket lies inside one bucket of the street before


class DeckRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A small deck, as in the `[game]` table of poker."""

    ranks: int
    suits: int
    hole_cards: int = 1
    board_cards: Sequence[int] = (0, 1)

    def listing(self) -> DeckListing:
        """Return the deck's hands and boards; `ValueError` for an invalid deck."""
        return DeckListing(self.ranks, self.suits, self.hole_cards, tuple(self.board_cards))


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole abstraction of hold'em, whose preflop is lossless by default, or of a small deck."""

    seed: int = 0
    deck: DeckRecipe | None = None
    preflop: StreetRecipe = StreetRecipe(features="lossless")
    flop: StreetRecipe | None = None
    turn: StreetRecipe | None = None
    river: StreetRecipe | None = None

    @property
    def streets(self) -> tuple[str, ...]:
        """Names of the game's streets."""
        return STREETS if self.deck is None else STREETS[: len(self.deck.board_cards)]

    def part(self, street: str) -> StreetRecipe:
        """Return the recipe of a street; `ValueError` if it is missing."""
        found: StreetRecipe | None = getattr(self, street)
        if found is None:
            raise ValueError(f"[{street}] is missing: the recipe needs {', '.join(self.streets[1:])}")
        return found


def load_recipe(path: Path) -> Recipe:
    """Read a recipe; `ValueError` in one sentence that names the file, the key and the allowed values."""
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
    """Raise `ValueError`, naming the key and the allowed values, unless the recipe can be built."""
    if recipe.deck is not None:
        _check_deck(recipe)
    for street in recipe.streets:
        part = recipe.part(street)
        _check_values(street, part, _allowed(recipe, street), small=recipe.deck is not None)
        _check_keys(street, part)
        _check_count(recipe, street)
        _check_nesting(street, part, small=recipe.deck is not None)
        _check_history(recipe, street, part)
    build_order(recipe)
    if not 0 <= recipe.seed < 2**32:
        raise ValueError(f"seed = {recipe.seed} is not allowed: it must be 0 to 2**32 - 1")


def _check_keys(street: str, part: StreetRecipe) -> None:
    """Raise `ValueError` if a key is given that does not apply to the features of its street."""
    for field in msgspec.structs.fields(StreetRecipe):
        key, value = field.name, getattr(part, field.name)
        if key != "features" and value != field.default and key not in _APPLY[part.features]:
            text = f"{value}".lower() if isinstance(value, bool) else repr(value)
            keys = ", ".join(_APPLY[part.features])
            raise ValueError(
                f"{street}.{key} = {text} means nothing where {street}.features = {part.features!r}, which takes "
                f"{keys}: leave it out"
            )


def _check_count(recipe: Recipe, street: str) -> None:
    """Raise `ValueError` if a street has more buckets than classes of hands.

    The limit of a small deck is its number of pairs of hand and board.
    """
    buckets = recipe.part(street).buckets
    if recipe.deck is None:
        most = LOSSLESS_BUCKETS[street]
    else:
        listing = recipe.deck.listing()
        most = len(listing.hands) * len(listing.boards[STREETS.index(street)])
    if buckets is not None and buckets > most:
        raise ValueError(f"{street}.buckets = {buckets} is not allowed: the {street} has at most {most:,}")


def _allowed(recipe: Recipe, street: str) -> tuple[str, ...]:
    if recipe.deck is None:
        return ALLOWED[street]
    return _ALLOWED_LAST if street == recipe.streets[-1] else _ALLOWED_BEFORE


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


def _check_values(street: str, part: StreetRecipe, allowed: tuple[str, ...], *, small: bool) -> None:
    if part.features not in allowed:
        raise ValueError(f"{street}.features = {part.features!r} is not one of: {', '.join(allowed)}")
    for key, (low, high) in _LIMITS.items():
        value = getattr(part, key)
        if value is not None and not low <= value <= high:
            raise ValueError(f"{street}.{key} = {value} is not allowed: it must be {low:,} to {high:,}")
    if part.features == "lossless":
        if part.buckets is not None and small:
            raise ValueError(f"{street}.buckets = {part.buckets}: leave it out, {street}.features are lossless")
        if part.buckets not in (None, LOSSLESS_BUCKETS.get(street)):
            raise ValueError(f"{street}.buckets = {part.buckets}: a lossless {street} has {LOSSLESS_BUCKETS[street]:,}")
    elif part.buckets is None:
        raise ValueError(f"{street}.buckets is missing: say how many, such as buckets = 200")
    elif part.sample and part.sample < part.buckets:
        raise ValueError(f"{street}.sample = {part.sample} is below {street}.buckets = {part.buckets}")


def _check_nesting(street: str, part: StreetRecipe, *, small: bool) -> None:
    inside = f"{street}.public = {part.public}" if part.public else f"{street}.nested = true"
    if not (part.public or part.nested):
        return
    if part.public and part.nested:
        raise ValueError(f"{street}.public and {street}.nested cannot be combined: choose one of them")
    if part.levels == 2:
        raise ValueError(f"{inside} and {street}.levels = 2 cannot be combined: the nesting is the first level")
    if part.nested and street == STREETS[0]:
        raise ValueError(f"{street}.nested = true is not allowed: there is no street before it")
    if small:
        if part.public and part.buckets is not None and part.buckets < part.public:
            raise ValueError(f"{inside} needs at least {part.public} buckets, and {street}.buckets = {part.buckets}")
        return
    least = part.public
    if part.buckets is not None and part.buckets < least:
        raise ValueError(f"{inside} needs at least {least} buckets, and {street}.buckets = {part.buckets}")


def remembers(recipe: Recipe, street: str) -> bool:
    """Return whether a street's buckets have a history (`abstraction.recall_buckets`).

    These are nested streets of hold'em, except a flop nested in the 169 preflop classes.
    """
    lossless = street == "flop" and recipe.preflop.features == "lossless"
    return recipe.deck is None and recipe.part(street).nested and not lossless


def _check_history(recipe: Recipe, street: str, part: StreetRecipe) -> None:
    if recipe.deck is not None or street == STREETS[0]:
        return
    name = STREETS[STREETS.index(street) - 1]
    count = bucket_count(recipe, name)
    if not remembers(recipe, street):
        if part.nested and part.buckets is not None and part.buckets < count:
            raise ValueError(
                f"{street}.nested = true needs at least {count} buckets, and {street}.buckets = {part.buckets}"
            )
        if remembers(recipe, name):
            raise ValueError(f"{name}.nested = true needs {street}.nested = true: all streets from one on remember")
        return
    if part.features not in ("ehs", "ehs2"):
        raise ValueError(f"{street}.nested = true needs {street}.features = 'ehs' or 'ehs2', not {part.features!r}")
    if count > _MOST_BEFORE or (part.buckets or 0) % count:
        raise ValueError(
            f"{street}.buckets = {part.buckets} cannot be nested in the {name}'s {count:,}: it must be a multiple of "
            f"them, and they at most {_MOST_BEFORE:,}"
        )


def bucket_count(recipe: Recipe, street: str) -> int:
    """Return the number of buckets of a hold'em recipe on a street."""
    part = recipe.part(street)
    return LOSSLESS_BUCKETS[street] if part.features == "lossless" else part.buckets or 0


def stage_document(recipe: Recipe, street: str) -> dict[str, Any]:
    """Return all settings that determine a street's buckets, with defaults filled in.

    Two recipes with equal documents and equal parent stages share the stage.
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
    """Return the street whose buckets this one's features use: the next street for `potential`, else None."""
    return STREETS[STREETS.index(street) + 1] if recipe.part(street).features == "potential" else None


def street_before(recipe: Recipe, street: str) -> str | None:
    """Return the street within whose buckets this street is nested, else None.

    A flop nested in the 169 preflop classes needs no preflop stage.
    """
    nested = recipe.part(street).nested if recipe.deck is not None else remembers(recipe, street)
    return STREETS[STREETS.index(street) - 1] if nested else None


def parent_streets(recipe: Recipe, street: str) -> list[str]:
    """Return the streets that must be built before this one."""
    return [other for other in (next_street(recipe, street), street_before(recipe, street)) if other is not None]


def build_order(recipe: Recipe) -> list[str]:
    """Return the streets in an order that builds parents first.

    Raises `ValueError` if two streets need each other.
    """
    order: list[str] = []

    def add(street: str, waiting: tuple[str, ...]) -> None:
        if street in waiting:
            raise ValueError(
                f"{waiting[-1]} is nested in {street}, or {street} in {waiting[-1]}, and one has potential-aware "
                "features of the other's buckets: each would have to be built first; leave one of the two out"
            )
        if street not in order:
            for parent in parent_streets(recipe, street):
                add(parent, (*waiting, street))
            order.append(street)

    for street in recipe.streets:
        add(street, ())
    return order
