"""Recipes: one TOML file says how each street's hands are put into buckets.

    seed = 0
    [flop]
    features = "histogram"
    buckets = 1000

`lossless` keeps every class of hands apart; `histogram` describes a flop or turn hand by the distribution of its river
strength; `potential` by the distribution over the next street's buckets; `ehs` and `ehs2` by its mean or mean square
strength, cut at percentiles; `ochs` describes a river hand by its equity against clusters of opponent hands; `values`
describes a hand by what it wins at each decision if both go on by the policies that the recipe names:

    values = ["policy"]

A bucket of a street that is `nested` lies inside one of the street before (`abstraction.history`).

With a table `[deck]` the recipe is for games with that small deck.  Their streets have the names of hold'em's, from the
preflop on, whatever is dealt on them; the last has what the river has.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from abstraction.listing import DeckListing
from storage.damage import DamagedError, reading

STREETS = ("preflop", "flop", "turn", "river")
ALLOWED = {
    "preflop": ("lossless", "ehs"),
    "flop": ("lossless", "histogram", "potential", "ehs", "ehs2", "values"),
    "turn": ("lossless", "histogram", "potential", "ehs", "ehs2", "values"),
    "river": ("ochs", "ehs", "values"),
}
"""Features that each street can have."""
_ALLOWED_LAST = ("lossless", "ochs", "ehs", "values")
_ALLOWED_BEFORE = ("lossless", "histogram", "potential", "ehs", "ehs2", "values")
"""And those with a small deck."""
LOSSLESS_BUCKETS = {"preflop": 169, "flop": 1_286_792, "turn": 13_960_050, "river": 123_156_254}
"""Classes of hands up to a renaming of suits."""
CLUSTERED = ("histogram", "potential", "ochs")
"""Features that are clustered by k-means; the others need none."""
TWO_LEVELS_FROM = 5_000
"""Buckets from which a street is clustered by two levels, unless the recipe says otherwise."""
PERCENTILES = 1_000
"""Of a street whose buckets remember (`abstraction.history`): what each bucket before is cut by."""
_MOST_BEFORE = 10_000
SAMPLE = 1_000_000
"""River hands that are clustered by default; the earlier streets have few distinct points and take all."""
SAMPLE_PER_BUCKET = 80
"""And at least so many for each bucket."""
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
"""Of keys, where they apply and nothing is given."""
_COMMON = ("buckets", "distance", "sample", "iterations", "levels", "public", "nested")
_KEYS: dict[str, tuple[str, ...]] = {
    "lossless": (),
    "histogram": (*_COMMON, "bins"),
    "potential": _COMMON,
    "ehs": ("buckets",),
    "ehs2": ("buckets",),
    "ochs": (*_COMMON, "clusters"),
    "values": ("buckets", "sample", "iterations"),
}
"""Of a stage's document, by features."""
_APPLY = _KEYS | {"lossless": ("buckets",)} | dict.fromkeys(("ehs", "ehs2"), ("buckets", "public", "nested"))
"""Keys of a street, by features; others are refused."""


class StreetRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One street.  None stands for a default that `stage_document` resolves, where the key applies to the features."""

    features: Literal["lossless", "histogram", "potential", "ehs", "ehs2", "ochs", "values"]
    buckets: int | None = None  # needed, except where lossless
    distance: Literal["emd", "l2"] | None = None  # emd for histograms and potential, l2 for ochs
    bins: int | None = None  # of a histogram
    clusters: int | None = None  # of opponent hands
    sample: int | None = None  # hands drawn by weight for the clustering, 0 all; all are assigned
    iterations: int | None = None  # of Lloyd's algorithm, at most
    levels: int | None = None  # 2: groups first, then buckets within them
    public: int = 0  # clusters of boards, inside which the buckets lie
    nested: bool = False  # a bucket determines that of the street before


class DeckRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A small deck, as in the `[game]` table of poker."""

    ranks: int
    suits: int
    hole_cards: int = 1
    board_cards: Sequence[int] = (0, 1)

    def listing(self) -> DeckListing:
        """Its hands and boards; `ValueError` for a deck that is none."""
        return DeckListing(self.ranks, self.suits, self.hole_cards, tuple(self.board_cards))


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole abstraction: of hold'em, whose preflop is lossless by default, or of a small deck."""

    seed: int = 0
    values: Sequence[str] = ()  # policies, by which features = "values" go; beside the recipe
    deck: DeckRecipe | None = None
    preflop: StreetRecipe = StreetRecipe(features="lossless")
    flop: StreetRecipe | None = None
    turn: StreetRecipe | None = None
    river: StreetRecipe | None = None

    @property
    def streets(self) -> tuple[str, ...]:
        """Those of the game."""
        return STREETS if self.deck is None else STREETS[: len(self.deck.board_cards)]

    def part(self, street: str) -> StreetRecipe:
        """What is said of a street; `ValueError` where that is nothing."""
        found: StreetRecipe | None = getattr(self, street)
        if found is None:
            raise ValueError(f"[{street}] is missing: the recipe needs {', '.join(self.streets[1:])}")
        return found


def load_recipe(path: Path) -> Recipe:
    """Read a recipe; `ValueError` of one sentence naming the file, the key and what is allowed."""
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
    """Raise `ValueError` of one sentence, naming the key and what is allowed, unless the recipe can be built."""
    if recipe.deck is not None:
        _check_deck(recipe)
    parts = {street: recipe.part(street) for street in recipe.streets}
    for street, part in parts.items():
        _check_values(street, part, _allowed(recipe, street), small=recipe.deck is not None)
        _check_keys(street, part)
        _check_count(recipe, street)
        _check_nesting(street, part, small=recipe.deck is not None)
        _check_history(recipe, street, part)
    build_order(recipe)
    _check_values_keys(recipe, parts)
    if not 0 <= recipe.seed < 2**32:
        raise ValueError(f"seed = {recipe.seed} is not allowed: it must be 0 to 2**32 - 1")


def _check_values_keys(recipe: Recipe, parts: dict[str, StreetRecipe]) -> None:
    for street, part in parts.items():
        if part.features != "values":
            continue
        if not recipe.values:
            raise ValueError(f"{street}.features = 'values' needs policies: name them, as values = [\"policy\"]")


def _check_keys(street: str, part: StreetRecipe) -> None:
    """Raise `ValueError` for a key that is given and means nothing for the features of its street."""
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
    """Raise `ValueError` for more buckets than a street has classes of hands, or in a small deck hands and boards."""
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
    """Whether a street's buckets are made by `abstraction.history`: hold'em's nested ones, but a flop's in 169."""
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
    """Buckets that a recipe of hold'em makes on a street."""
    part = recipe.part(street)
    return LOSSLESS_BUCKETS[street] if part.features == "lossless" else part.buckets or 0


def stage_document(recipe: Recipe, street: str) -> dict[str, Any]:
    """What decides a street's buckets, defaults resolved: two recipes that agree here, and in parents, share it."""
    part, small = recipe.part(street), recipe.deck is not None
    document: dict[str, Any] = {"street": street, "features": part.features}
    for key in _KEYS[part.features]:
        value = getattr(part, key)
        document[key] = _DEFAULTS.get(key) if value is None else value
    if recipe.deck is not None:
        document["deck"] = {**msgspec.to_builtins(recipe.deck), "board_cards": list(recipe.deck.board_cards)}
        document["nested"] = part.nested
    if part.features == "values":
        document["sample"] = SAMPLE if part.sample is None else part.sample
        return document | {"seed": recipe.seed}
    if part.features not in CLUSTERED:
        if part.public:
            return document | {"public": part.public, "seed": recipe.seed}
        if remembers(recipe, street):
            return document | {"percentiles": PERCENTILES, "seed": recipe.seed}
        return document | ({"nested": True} if part.nested else {})
    buckets = part.buckets or 0  # there: `check_recipe` has seen to it
    if part.distance is None:
        document["distance"] = "l2" if part.features == "ochs" else "emd"
    if part.sample is None:
        document["sample"] = max(SAMPLE, SAMPLE_PER_BUCKET * buckets) if street == "river" and not small else 0
    if part.levels is None:
        large = buckets >= TWO_LEVELS_FROM and not (part.public or part.nested)
        document["levels"] = 2 if large else 1
    return document | {"seed": recipe.seed}


def next_street(recipe: Recipe, street: str) -> str | None:
    """The street whose buckets this one's features are made of: the next one for `potential`, else none."""
    return STREETS[STREETS.index(street) + 1] if recipe.part(street).features == "potential" else None


def street_before(recipe: Recipe, street: str) -> str | None:
    """The street inside whose buckets this one's lie, if nested; hold'em's 169 classes need not be built."""
    nested = recipe.part(street).nested if recipe.deck is not None else remembers(recipe, street)
    return STREETS[STREETS.index(street) - 1] if nested else None


def parent_streets(recipe: Recipe, street: str) -> list[str]:
    """Streets that must be built before this one."""
    return [other for other in (next_street(recipe, street), street_before(recipe, street)) if other is not None]


def build_order(recipe: Recipe) -> list[str]:
    """Streets in an order in which each comes after those it needs; `ValueError` where two need each other."""
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
