"""The list behind `mccfr games`: every game with its parameters, defaults, and the counts of an example."""

from pathlib import Path
from typing import Any

import msgspec

from mccfr.config import GameConfig
from mccfr.config_file import config_from
from mccfr.games.build import build_game
from mccfr.games.histories import count_histories

EXAMPLES: dict[str, dict[str, Any] | None] = {
    "kuhn": {},
    "leduc": {},
    "goofspiel": {},
    "matrix": {"payoffs": [[1.0, 0.9], [-0.7, 1.0]]},
    "poker": {"antes": [1.0, 1.0], "stack": 5.0},
    "akq": {},
    "clairvoyance": {"streets": 2, "bet": 1.0, "probability": 0.2},
    "holdem-subgame": None,  # needs the user's file
    "holdem": None,  # needs an abstraction: see runs/hunl-quick.toml and `mccfr plan`
    "flop-holdem": {},
    "openspiel": None,  # needs an optional package
}
"""Parameters of the example whose counts are shown; None: none can be shown."""


def catalogue() -> list[dict[str, Any]]:
    """One entry for each game: name, description, parameters (default, or None where required), example, counts."""
    entries = []
    for kind in GameConfig.__args__:
        name = kind.__struct_config__.tag
        example = EXAMPLES[name]
        entries.append(
            {
                "name": name,
                "description": (kind.__doc__ or "").split("\n")[0],
                "parameters": {field.encode_name: _default(field) for field in msgspec.structs.fields(kind)},
                "example": example,
                "counts": None if example is None else _counts(name, example),
            }
        )
    return entries


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return None if field.required else msgspec.to_builtins(field.default)


def _counts(name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    config = config_from({"game": {"name": name, **parameters}}, f"the example of {name}")
    game = build_game(config.game, Path())
    return {**game.counts(), "histories": count_histories(game)}
