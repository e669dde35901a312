"""Games of OpenSpiel, and its values of our strategies."""

import pyspiel

from mccfr.games.game import Game
from mccfr.tables.strategy import Strategy
from mccfr.trees.compiled import TERMINAL, CompiledTree


def universal_poker(ranks: int, suits: int, hole_cards: int, board_cards: tuple[int, ...], **parameters: object):
    """For two players; `parameters` as OpenSpiel has them."""
    given = {"numSuits": suits, "numRanks": ranks, "numHoleCards": hole_cards, "numPlayers": 2, **parameters}
    rounds = {"numRounds": len(board_cards), "numBoardCards": " ".join(map(str, board_cards))}
    return pyspiel.load_game("universal_poker", given | rounds)


NO_LIMIT = {"betting": "nolimit", "bettingAbstraction": "fullgame"}


def turn_based_goofspiel(cards: int, reveal: str = "bids") -> pyspiel.Game:
    """Return OpenSpiel's game, which pays half of what ours does and forgets the order of revealed bids."""
    hidden = "True" if reveal == "result" else "False"
    return pyspiel.load_game(
        f"turn_based_simultaneous_game(game=goofspiel(num_cards={cards},points_order=ascending,imp_info={hidden},"
        "returns_type=point_difference))"
    )


def openspiel_values(game: Game, spiel: pyspiel.Game, strategy: Strategy) -> tuple[list[float], list[float]]:
    """Return each player's chips by a strategy of a tree of all histories, and by a best response to the others.

    Both games have their actions in one order.
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
    """Compare our tree below a node with all states below one of universal_poker; return the number of terminals.

    Player 0 has the best hand on the board that is dealt from the lowest card.
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
