"""Monte Carlo counterfactual regret minimisation for huge abstracted imperfect-information games.

`__all__` lists the Python interface, which docs/api.md describes.  Each name is imported when it is first used, so that
`import mccfr` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mccfr.api.outcomes import evaluate, load_policy, match
    from mccfr.api.records import Evaluation, MatchResult, Progress
    from mccfr.api.running import Run, resume, solve
    from mccfr.api.solving import Solver, game, solver
    from mccfr.api.spot import spot
    from mccfr.games.game import Game
    from mccfr.policy.read import Policy
    from mccfr.solvers.rules import regret_rule
    from mccfr.solvers.variants import Variant

from mccfr.neighbours import check_neighbours

__version__ = "0.2.0"

check_neighbours()

__all__ = [
    "Evaluation",
    "Game",
    "MatchResult",
    "Policy",
    "Progress",
    "Run",
    "Solver",
    "Variant",
    "__version__",
    "evaluate",
    "game",
    "load_policy",
    "match",
    "regret_rule",
    "resume",
    "solve",
    "solver",
    "spot",
]

_WHERE = {
    "Evaluation": "mccfr.api.records",
    "Game": "mccfr.games.game",
    "MatchResult": "mccfr.api.records",
    "Policy": "mccfr.policy.read",
    "Progress": "mccfr.api.records",
    "Run": "mccfr.api.running",
    "Solver": "mccfr.api.solving",
    "Variant": "mccfr.solvers.variants",
    "evaluate": "mccfr.api.outcomes",
    "game": "mccfr.api.solving",
    "load_policy": "mccfr.api.outcomes",
    "match": "mccfr.api.outcomes",
    "regret_rule": "mccfr.solvers.rules",
    "resume": "mccfr.api.running",
    "solve": "mccfr.api.running",
    "solver": "mccfr.api.solving",
    "spot": "mccfr.api.spot",
}


def __getattr__(name: str) -> Any:
    """Import a name of the interface from its module (PEP 562)."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it offers {', '.join(__all__)}")
    found = globals()[name] = getattr(import_module(_WHERE[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, "play"])
