"""Games whose every bet is in their tree, read as real betting: a line is its own node, payoffs are the tree's."""

import pytest
from small_games import game_of

from mccfr.games.in_tree import InTree
from mccfr.games.reading import Reading
from mccfr.games.translation import real_betting
from mccfr.trees.compiled import DECISION, TERMINAL
from mccfr.trees.lines import line_text


@pytest.mark.parametrize("name", ["kuhn", "leduc"])
def test_every_line_is_its_own_node_with_the_trees_payoffs(name):
    found = real_betting(game_of(name))
    assert isinstance(found, InTree)
    tree = found.tree
    ended = 0
    for node, kind in enumerate(tree.arrays.kind.tolist()):
        state, readings = found.read(line_text(tree, node))
        assert readings == [Reading(node, 1.0)]
        assert isinstance(state, int) == (kind != DECISION)
        if kind != DECISION:
            continue
        assert (state.player, state.street) == (tree.arrays.player[node], tree.arrays.block[node] // 2)
        for number, action in enumerate(found.actions(state)):
            child = found.child(node, number)
            assert found.follow(readings, state, action) == [Reading(child, 1.0)]
            assert found.real_actions(readings[0], state)[number] == found.real_action(node, number, state) == action
            if tree.arrays.kind[child] == TERMINAL:
                ended += 1
                assert isinstance(found.apply(state, action), int)
                if action == "f":
                    assert found.settled(state, action) == (
                        -state.put_in[0] if state.player == 0 else state.put_in[1],
                        0,
                    )
                else:
                    assert found.settled(state, action) == (0, state.to_call)
            else:
                assert found.apply(state, action) == found.read(line_text(tree, child))[0]
    assert ended == (tree.arrays.kind == TERMINAL).sum()


def test_what_is_not_possible_is_refused_with_what_is():
    found = real_betting(game_of("kuhn"))
    with pytest.raises(ValueError, match="after '': 'r300' is not possible here; legal actions: c, b"):
        found.apply(found.start()[0], "r300", "after ''")
