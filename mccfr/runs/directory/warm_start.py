"""The policy that a run's tables begin with (`solver.warm_start`): found, known again, and put into fresh tables."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from mccfr.config.games import GameConfig
from mccfr.config.solvers import CfrBrConfig, ExternalSamplingConfig, SampledActionsConfig
from mccfr.config.tables import Config
from mccfr.evaluation.same_game import check_same_game
from mccfr.games.game import Game
from mccfr.policy import Policy
from mccfr.policy.layout import META
from mccfr.solvers.public.cfr_br import trunk_game
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.warm_start import WARM_BOARDS, begin_warm, begin_warm_boards
from mccfr.tables.layout import TableSet, private_tables
from mccfr.tables.strategy import Strategy


def warm_policy(config: Config, base: Path) -> Path | None:
    """Where the policy lies that a configuration begins with, if it names one; `base`: what its files are relative to.

    Raises `FileNotFoundError` where no policy lies there.
    """
    solver = config.solver
    if not isinstance(solver, SampledActionsConfig | CfrBrConfig) or not isinstance(solver.warm_start, str):
        return None
    path = (base / solver.warm_start).resolve()
    if not (path / META).is_file():
        raise FileNotFoundError(
            f"solver.warm_start = {solver.warm_start!r} is no policy: {path} has no {META}; name a directory that "
            "mccfr export wrote"
        )
    return path


def policy_hash(path: Path) -> str:
    """What a policy is known by: the SHA-256 of its list of files, which has the checksum of each."""
    return sha256((path / META).read_bytes()).hexdigest()


def check_warm_start(config: Config, base: Path, game: Game) -> None:
    """Raise `ValueError` or `OSError` of one sentence where `game` cannot begin with the policy of its configuration.

    That is where the policy is damaged, or of a game that differs in more than card buckets and, where there is a menu,
    bets.
    """
    path = warm_policy(config, base)
    if path is not None:
        _opened(path, game)


def fill_warm(
    config: Config,
    base: Path,
    game: Game,
    tables: TableSet,
    known: str | None = None,
    filled: Callable[[float], None] = lambda _: None,
) -> None:
    """Put the policy of a configuration, or what it has sampled first, into fresh tables, in place.

    known   `policy_hash` of the policy that it was when the run was made; None: whatever lies there
    filled  told what share of the sampling is done; what it raises ends it

    Raises `ValueError` where another policy lies there, and as `check_warm_start`.
    """
    path, solver = warm_policy(config, base), config.solver
    if path is None:
        if isinstance(solver, CfrBrConfig) and isinstance(solver.warm_start, int):
            strategy = _sampled(game, solver.warm_start, solver.seed, filled)
            begin_warm_boards(game, trunk_game(solver, game), tables, game, strategy, WARM_BOARDS)
        return
    if known is not None and policy_hash(path) != known:
        raise ValueError(
            f"{path} is another policy than when the run was made, and nothing has been trained on it yet: put that "
            "one back, or start a new run"
        )
    policy = _opened(path, game)
    if isinstance(solver, CfrBrConfig):
        trunk = trunk_game(solver, game)
        begin_warm_boards(game, trunk, tables, policy.game, policy.strategy(), WARM_BOARDS)
        return
    assert isinstance(solver, SampledActionsConfig)
    begin_warm(game, tables, policy.game, policy.strategy(), solver.warm_iterations)


def _sampled(game: Game, nodes: int, seed: int, filled: Callable[[float], None]) -> Strategy:
    """The average strategy of external sampling for so many nodes, by one worker in this process."""
    config = Config(game=GameConfig(), solver=ExternalSamplingConfig(seed=seed))  # the game is made already
    algorithm = algorithm_of(algorithm_of(config).completed(game))
    tables, done = private_tables(algorithm.layout(game)), 0
    solver = algorithm.solver(game, tables)
    while done < nodes:
        filled(done / nodes)
        done += solver.run(done, nodes - done, nodes)[1]
    return algorithm.averages.strategy(game, tables, done, solver.state.iterations)


def _opened(path: Path, game: Game) -> Policy:
    if not game.cards.dealt:
        raise ValueError(
            f"solver.warm_start is for games that deal cards beside their tree, and {game.name} keeps its chance in "
            "it: leave it out"
        )
    policy = Policy.open(path)
    try:
        check_same_game(game, policy.game)
    except ValueError as error:
        raise ValueError(f"solver.warm_start: the run cannot begin with {path}: {error}") from None
    return policy
