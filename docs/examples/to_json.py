"""An export: every decision of a policy as JSON, {line: {hand: {action: probability}}}."""

import json
from pathlib import Path

import numpy as np

from mccfr import load_policy


def to_json(directory: str, out: str) -> None:
    """Write all decisions of a game that deals no board cards: Kuhn, one-card poker, a river endgame."""
    policy, found = load_policy(directory), {}
    lines = json.loads((policy.path / "tree_line.json").read_text(encoding="utf-8"))
    for node in np.flatnonzero(np.load(policy.path / "tree_kind.npy") == 0):  # decisions
        decision = policy.query(lines[node])
        actions = [action["action"] for action in decision["actions"]]
        found[lines[node]] = {hand: dict(zip(actions, row, strict=True)) for hand, row in decision["hands"].items()}
    Path(out).write_text(json.dumps(found, indent=1), encoding="utf-8")
