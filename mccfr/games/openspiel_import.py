"""Imports games from OpenSpiel (Lanctot et al. 2019) as full game trees, chance nodes included."""

from typing import Any

from mccfr.cards.no_cards import NO_CARDS
from mccfr.config.game_tables import OpenSpielGame
from mccfr.games.game import Game
from mccfr.trees.history_compiler import Chance, Decision, Expansion, build_history_tree, largest_payoff

MOST_HISTORIES = 20_000_000
"""Most histories, chance nodes and terminals included; a traversal in Python takes about 10 minutes."""


def import_openspiel(config: OpenSpielGame) -> Game:
    """Compile a turn-based two-player zero-sum game of OpenSpiel with perfect recall.

    config  the `[game]` table; its key `game` is OpenSpiel's text, such as "liars_dice(dice_sides=4)"

    The labels of actions are OpenSpiel's action ids as text, with its action names for display. Infosets are named by
    `information_state_string`. Games of perfect information without it name them by their sequence of actions. Payoffs
    are OpenSpiel's returns.

    Raises `ValueError` if the package is missing, the game is unknown or of another kind, or it has more than 20
    million histories (`MOST_HISTORIES`).
    """
    try:
        import pyspiel
    except ImportError:
        raise ValueError(
            f"game.game = {config.game!r} needs the package open_spiel: run tools/bootstrap openspiel in the clone"
        ) from None
    game = _load(pyspiel, config.game)
    problem = _problem(pyspiel, game)
    if problem:
        raise ValueError(f"game.game = {config.game!r} {problem}")
    by_history = not game.get_type().provides_information_state_string

    def expand(reached: tuple[Any, int | None]) -> Expansion:
        state, action = reached
        if action is not None:  # states are large: siblings on the stack share their parent's state
            state = state.child(action)
        if state.is_terminal():
            first, second = state.returns()
            return first, second
        if state.is_chance_node():
            actions, probabilities = zip(*state.chance_outcomes(), strict=True)
            names = [state.action_to_string(a) for a in actions]
            return Chance([str(a) for a in actions], probabilities, [(state, a) for a in actions], names)
        player, actions = state.current_player(), state.legal_actions()
        infoset = state.history_str() if by_history else state.information_state_string(player)
        names = [state.action_to_string(player, a) for a in actions]
        return Decision(player, infoset, [str(a) for a in actions], [(state, a) for a in actions], names)

    name = f"game.game = {config.game!r}"
    tree = build_history_tree((game.new_initial_state(), None), expand, max_histories=MOST_HISTORIES, name=name)
    return Game("openspiel", tree, NO_CARDS, pot_chips=largest_payoff(tree))


def _load(pyspiel: Any, text: str) -> Any:
    """Load the game of a text such as "liars_dice(dice_sides=4)"; `ValueError` if it is unknown."""
    short_name = text.partition("(")[0].strip()
    if short_name not in pyspiel.registered_names():
        raise ValueError(f"game.game = {text!r}: OpenSpiel has no game of the name {short_name!r}")
    try:
        return pyspiel.load_game(text)
    except pyspiel.SpielError as error:
        raise ValueError(f"game.game = {text!r}: OpenSpiel says: {' '.join(str(error).split())}") from None


def _problem(pyspiel: Any, game: Any) -> str | None:
    """Return why a game cannot be imported, as the end of a sentence; None if it can."""
    kind, declared = pyspiel.GameType, game.get_type()
    if declared.dynamics == kind.Dynamics.SIMULTANEOUS:
        return (
            "has simultaneous moves; only turn-based games can be imported: "
            f"try 'turn_based_simultaneous_game(game={game})'"
        )
    conditions = (
        (declared.dynamics == kind.Dynamics.SEQUENTIAL, f"is not turn-based ({declared.dynamics.name})"),
        (game.num_players() == 2, f"is for {game.num_players()} players; exactly two are needed"),
        (declared.utility == kind.Utility.ZERO_SUM, f"is not zero sum ({declared.utility.name})"),
        (
            declared.reward_model == kind.RewardModel.TERMINAL,
            f"pays before its end ({declared.reward_model.name}); all payoffs must be at terminals",
        ),
        (
            declared.chance_mode != kind.ChanceMode.SAMPLED_STOCHASTIC,
            "samples its chance moves; their outcomes and probabilities must be explicit",
        ),
        (
            declared.provides_information_state_string or declared.information == kind.Information.PERFECT_INFORMATION,
            "does not tell infosets apart (no information_state_string); perfect recall is needed",
        ),
    )
    return next((text for holds, text in conditions if not holds), None)
