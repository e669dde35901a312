"""The only list of algorithms: from the name in `[solver]` to what answers for it.

A class is named as `module:Class` and imported when a run is of it.  `register` adds one to the list.
"""

from importlib import import_module

from mccfr.config.tables import OPTIONS, Config, SolverConfig
from mccfr.solvers.solver import Algorithm

_ALGORITHMS: dict[str, str | type[Algorithm]] = {
    "external-sampling": "mccfr.solvers.external:ExternalSampling",
    "outcome-sampling": "mccfr.solvers.outcome:OutcomeSampling",
    "public-chance-sampling": "mccfr.solvers.public_chance:PublicChance",
    "cfr": "mccfr.solvers.full_width:FullWidth",
}


def register(algorithm: type[Algorithm]) -> None:
    """Add an algorithm under the tag of its options; `ValueError` where the name is taken by another."""
    name = str(algorithm.options.__struct_config__.tag)
    if _ALGORITHMS.get(name, algorithm) is not algorithm:
        raise ValueError(f"there is an algorithm {name!r} already: choose another tag for {algorithm.__name__}")
    _ALGORITHMS[name] = algorithm
    OPTIONS[name] = algorithm.options


def algorithm_named(name: str) -> type[Algorithm]:
    """The class behind a name; `ValueError` for an unknown one."""
    found = _ALGORITHMS.get(name)
    if found is None:
        raise ValueError(f"solver.algorithm = {name!r} is not one of: {', '.join(map(repr, _ALGORITHMS))}")
    if isinstance(found, str):
        module, _, attribute = found.partition(":")
        found = _ALGORITHMS[name] = getattr(import_module(module), attribute)
    return found


def algorithm_name(solver: SolverConfig) -> str:
    """What `solver.algorithm` is for a `[solver]` table."""
    return str(solver.__struct_config__.tag)


def algorithm_of(config: Config) -> Algorithm:
    """The algorithm of a configuration."""
    return algorithm_named(algorithm_name(config.solver))(config)
