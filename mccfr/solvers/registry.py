"""Maps algorithm names in `[solver]` to their classes; this is the only list of algorithms.

A class is named as `module:Class` and imported when a run needs it.  Users name their own algorithms in the
configuration in the same form (`mccfr.config.plugins`).
"""

from importlib import import_module

from mccfr.common.user_code import function_name, is_foreign
from mccfr.config import plugins
from mccfr.config.run_tables import Config
from mccfr.config.solver_tables import FullWidthConfig, SolverConfig
from mccfr.config.toml_files import options_struct
from mccfr.solvers.solver import Algorithm

_ALGORITHMS: dict[str, str | type[Algorithm]] = {
    "external-sampling": "mccfr.solvers.sampling.external.external_algorithm:ExternalSampling",
    "outcome-sampling": "mccfr.solvers.sampling.outcome.outcome_algorithm:OutcomeSampling",
    "public-chance-sampling": "mccfr.solvers.public.public_chance.public_chance_algorithm:PublicChance",
    "cfr": "mccfr.solvers.full_width:FullWidth",
    "cfr-br": "mccfr.solvers.public.cfr_br_algorithm:CfrBestResponse",
    "deep-cfr": "mccfr.solvers.deep.deep_cfr_algorithm:DeepCfr",
}


def find_algorithm(name: str) -> type[Algorithm]:
    """Return the class of an algorithm by its `solver.algorithm`; raise `ValueError` for an unknown name.

    The name is one of the built-in ones or `module:Class` of a user's algorithm.
    """
    algorithm = _ALGORITHMS.get(name) or _from_outside(name)
    if algorithm is None:
        raise ValueError(f"solver.algorithm = {name!r} is not one of: {', '.join(map(repr, _ALGORITHMS))}")
    if isinstance(algorithm, str):
        module, _, attribute = algorithm.partition(":")
        algorithm = _ALGORITHMS[name] = getattr(import_module(module), attribute)
    return algorithm


def _from_outside(name: str) -> type[Algorithm] | None:
    """Return the class of a user's algorithm, named as `module:Class`; None: no such algorithm.

    The result is derived from the user's class.  Its `options` is the struct of this algorithm's `[solver]` table.
    Raises `ValueError` if the user's class is not derived from `Algorithm`.
    """
    options, loaded = options_struct("solver", name), plugins.find(plugins.ALGORITHMS, name)
    if options is None:
        return None
    if not issubclass(loaded, Algorithm):
        raise ValueError(f"solver.algorithm = {name!r} is not derived from mccfr.solvers.solver.Algorithm")
    return type(loaded.__name__, (loaded,), {"options": options, "__doc__": loaded.__doc__})


def algorithm_name(solver: SolverConfig) -> str:
    """Return the algorithm's name of a `[solver]` table, the value of its key `algorithm`."""
    return str(solver.__struct_config__.tag)


def algorithm_of(config: Config) -> Algorithm:
    """Return the Algorithm for a configuration: an object of the class that `solver.algorithm` names."""
    return find_algorithm(algorithm_name(config.solver))(config)


def user_code(config: Config) -> str | None:
    """Return a phrase that names the user's code in a configuration's `[solver]`; None if there is none.

    The code may be an algorithm, a regret rule or a schedule of discounts, such as "the regret rule my_rules:halved".
    """
    if isinstance(config.solver, FullWidthConfig):
        from mccfr.solvers.full_width import variant_of

        return variant_of(config.solver).user_code
    name = algorithm_name(config.solver)
    loaded = plugins.find(plugins.ALGORITHMS, name) if name not in _ALGORITHMS else None
    return f"the algorithm {function_name(loaded)}" if loaded is not None and is_foreign(loaded) else None
