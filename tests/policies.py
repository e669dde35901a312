"""Writes policies with random strategies, and repairs their manifests after a change."""

from pathlib import Path

from manifests import forge
from places import RUNS
from strategies import partly_reached_strategy

from mccfr.config.game_tables import GameConfig
from mccfr.config.run_tables import AbstractionConfig, Config
from mccfr.config.toml_files import to_document
from mccfr.games.registry import build_game
from mccfr.policy import write_policy


def document(config: GameConfig) -> dict[str, object]:
    """Return the `[game]` table of a game that policies contain."""
    return to_document(Config(game=config))["game"]


def write_random(out: Path, config: GameConfig, abstraction: Path | None = None, seed: int = 0) -> Path:
    """Write a policy with a random strategy and some unreached rows; return `out`."""
    game = build_game(config, RUNS, AbstractionConfig(str(abstraction)) if abstraction else None)
    provenance = {"checkpoint": seed}
    write_policy(out, game, document(config), partly_reached_strategy(game, seed), provenance=provenance)
    return out


def sign(out, **fields):
    """Rewrite meta.json for the present files, with some fields changed."""
    forge(out, lambda content: content.update(fields), "meta.json")
