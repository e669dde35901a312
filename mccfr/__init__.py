"""Monte Carlo counterfactual regret minimisation for huge abstracted imperfect-information games.

`__all__` lists the Python interface, which docs/api.md describes.  Each name is imported when it is first used, so that
`import mccfr` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mccfr.api.api_runs import Run, resume, solve
    from mccfr.api.api_spot import spot
    from mccfr.api.api_types import Evaluation, MatchResult, Progress
    from mccfr.api.evaluations import evaluate, load_policy, match
    from mccfr.api.in_process_solver import Solver, game, solver
    from mccfr.games.game import Game
    from mccfr.policy.reader import Policy
    from mccfr.solvers.user_regret_rules import regret_rule
    from mccfr.solvers.variants import Variant

from mccfr.common.package import VERSION, check_packages

__version__ = VERSION
check_packages()

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
    "Evaluation": "mccfr.api.api_types",
    "Game": "mccfr.games.game",
    "MatchResult": "mccfr.api.api_types",
    "Policy": "mccfr.policy.reader",
    "Progress": "mccfr.api.api_types",
    "Run": "mccfr.api.api_runs",
    "Solver": "mccfr.api.in_process_solver",
    "Variant": "mccfr.solvers.variants",
    "evaluate": "mccfr.api.evaluations",
    "game": "mccfr.api.in_process_solver",
    "load_policy": "mccfr.api.evaluations",
    "match": "mccfr.api.evaluations",
    "regret_rule": "mccfr.solvers.user_regret_rules",
    "resume": "mccfr.api.api_runs",
    "solve": "mccfr.api.api_runs",
    "solver": "mccfr.api.in_process_solver",
    "spot": "mccfr.api.api_spot",
}


def __getattr__(name: str) -> Any:
    """Import one of the public names in `__all__` when it is first used (PEP 562)."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it offers {', '.join(__all__)}")
    found = globals()[name] = getattr(import_module(_WHERE[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, "play"])
