"""The only list of algorithms: from the name in `[solver]` to what answers for it.

A class is named as `module:Class` and imported when a run is of it.  Algorithms of users are named so in the
configuration itself, or by an entry point (`mccfr.config.outside`).
"""

from importlib import import_module

from mccfr.config import outside
from mccfr.config.file import options_named
from mccfr.config.solvers import FullWidthConfig, SolverConfig
from mccfr.config.tables import Config
from mccfr.solvers.solver import Algorithm
from mccfr.user_code import function_name, is_foreign

_ALGORITHMS: dict[str, str | type[Algorithm]] = {
    "external-sampling": "mccfr.solvers.sampling.external.algorithm:ExternalSampling",
    "outcome-sampling": "mccfr.solvers.sampling.outcome.algorithm:OutcomeSampling",
    "public-chance-sampling": "mccfr.solvers.public.public_chance.algorithm:PublicChance",
    "cfr": "mccfr.solvers.full_width:FullWidth",
    "cfr-br": "mccfr.solvers.public.cfr_br:CfrBestResponse",
    "deep-cfr": "mccfr.solvers.deep.algorithm:DeepCfr",
}


def algorithm_named(name: str) -> type[Algorithm]:
    """The class behind a name; `ValueError` for an unknown one."""
    found = _ALGORITHMS.get(name) or _from_outside(name)
    if found is None:
        raise ValueError(f"solver.algorithm = {name!r} is not one of: {', '.join(map(repr, _ALGORITHMS))}")
    if isinstance(found, str):
        module, _, attribute = found.partition(":")
        found = _ALGORITHMS[name] = getattr(import_module(module), attribute)
    return found


def _from_outside(name: str) -> type[Algorithm] | None:
    """A user's class, its options those that go by this name; None where there is none of it."""
    options, found = options_named("solver", name), outside.find(outside.ALGORITHMS, name)
    if options is None:
        return None
    if not issubclass(found, Algorithm):
        raise ValueError(f"solver.algorithm = {name!r} is not derived from mccfr.solvers.solver.Algorithm")
    return type(found.__name__, (found,), {"options": options, "__doc__": found.__doc__})


def algorithm_name(solver: SolverConfig) -> str:
    """What `solver.algorithm` is for a `[solver]` table."""
    return str(solver.__struct_config__.tag)


def algorithm_of(config: Config) -> Algorithm:
    """Return the algorithm of a configuration."""
    return algorithm_named(algorithm_name(config.solver))(config)


def user_code(config: Config) -> str | None:
    """What a user has written of a configuration's solver: its algorithm, regret rule or schedule; None for nothing."""
    if isinstance(config.solver, FullWidthConfig):
        from mccfr.solvers.full_width import variant_of

        return variant_of(config.solver).user_code
    name = algorithm_name(config.solver)
    found = outside.find(outside.ALGORITHMS, name) if name not in _ALGORITHMS else None
    return f"the algorithm {function_name(found)}" if found is not None and is_foreign(found) else None
