"""Games of OpenSpiel, and its values of our strategies."""

import pyspiel

from mccfr.games.game import Game
from mccfr.tables.strategy import Strategy
from mccfr.trees.compiled import TERMINAL, CompiledTree


def universal_poker(ranks: int, suits: int, hole_cards: int, board_cards: tuple[int, ...], **parameters: object):
    """Return OpenSpiel's universal_poker for two players; `parameters` have OpenSpiel's names."""
    given = {"numSuits": suits, "numRanks": ranks, "numHoleCards": hole_cards, "numPlayers": 2, **parameters}
    rounds = {"numRounds": len(board_cards), "numBoardCards": " ".join(map(str, board_cards))}
    return pyspiel.load_game("universal_poker", given | rounds)


NO_LIMIT = {"betting": "nolimit", "bettingAbstraction": "fullgame"}


def turn_based_goofspiel(cards: int, reveal: str = "bids") -> pyspiel.Game:
    """Return OpenSpiel's game. It pays half of our chips and forgets the order of revealed bids."""
    hidden = "True" if reveal == "result" else "False"
    return pyspiel.load_game(
        f"turn_based_simultaneous_game(game=goofspiel(num_cards={cards},points_order=ascending,imp_info={hidden},"
        "returns_type=point_difference))"
    )


def openspiel_values(game: Game, spiel: pyspiel.Game, strategy: Strategy) -> tuple[list[float], list[float]]:
    """Return each player's chips with a strategy, and with a best response to the other players.

    The strategy is one of a tree of all histories. Both games list actions in the same order.
    """
    table, todo = {}, [(0, spiel.new_initial_state())]
    while todo:
        node, state = todo.pop()
        player, actions = state.current_player(), state.legal_actions()
        if player >= 0:
            slot = int(game.tree.arrays.slot[node])
            shares = strategy.probability[player][0, slot : slot + len(actions)].tolist()
            table[state.information_state_string()] = list(zip(actions, shares, strict=True))
        todo += zip(game.tree.children(node), map(state.child, actions), strict=True)
    policy, root = pyspiel.TabularPolicy(table), spiel.new_initial_state()
    players = range(spiel.num_players())
    best = [pyspiel.TabularBestResponse(spiel, player, policy).value_from_state(root) for player in players]
    return list(pyspiel.expected_returns(root, policy, -1, True)), best


def assert_same_betting(tree: CompiledTree, node: int, state: pyspiel.State) -> int:
    """Compare our tree below a node with universal_poker's states; return the number of terminals.

    The board has the lowest cards, on which player 0 has the best hand.
    """
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    arrays = tree.arrays
    if state.is_terminal():
        assert arrays.kind[node] == TERMINAL
        assert arrays.fixed[node] + arrays.showdown[node] == state.returns()[0]
        return 1
    assert arrays.player[node] == state.current_player()
    spent = [int(word) for word in str(state).split("Spent: [")[1].replace("]", " ").split() if word.isdigit()]
    assert tree.put_in[node].tolist() == spent
    below = [state.child(action) for action in state.legal_actions()]  # as ours: fold, call, raises
    assert len(below) == arrays.count[node]
    return sum(assert_same_betting(tree, child, s) for child, s in zip(tree.children(node), below, strict=True))
