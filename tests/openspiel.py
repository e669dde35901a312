"""The `universal_poker` game of OpenSpiel."""

import pyspiel


def universal_poker(ranks: int, suits: int, hole_cards: int, board_cards: tuple[int, ...], **parameters: object):
    """For two players; `parameters` as OpenSpiel has them."""
    given = {"numSuits": suits, "numRanks": ranks, "numHoleCards": hole_cards, "numPlayers": 2, **parameters}
    rounds = {"numRounds": len(board_cards), "numBoardCards": " ".join(map(str, board_cards))}
    return pyspiel.load_game("universal_poker", given | rounds)


NO_LIMIT = {"betting": "nolimit", "bettingAbstraction": "fullgame"}
