"""Deep CFR on the full deck: traversals, samples and tabulated averages, against naive code.

Shows:

* Batched traversals record the same samples as recursions deal by deal, with networks evaluated in full
  (test_batched_traversals_equal_recursions_over_single_deals, test_a_split_network_equals_the_whole_network)
* The average strategy as a table is weighted by reach, for each class of hands
  (test_the_tabulated_average_is_weighted_by_reach, test_every_hand_class_has_a_deal_and_its_preflop_class)
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from deep import DEALT_GAMES, DEALT_NETWORKS, trained
from naive import random_at
from refusals import refused

from mccfr.common.rng import ACTIONS, new_stream
from mccfr.config.solver_tables import DeepCfrConfig
from mccfr.solvers.deep.averages_as_tables import Classes, Tabulation, hand_classes
from mccfr.solvers.deep.lockstep import fill_words, traverse
from mccfr.solvers.deep.network import SplitNetwork, branches, stacked_network
from mccfr.solvers.deep.network_strategy import Networks
from mccfr.solvers.deep.sample_memory import SampleOrder
from mccfr.solvers.deep.sampled_cards import NO_CARD, draw_hands, view
from mccfr.solvers.deep.sampled_cards_cfr import check_options
from mccfr.trees.compiled import DECISION, TERMINAL


def naive_cards(seen, cards):
    """Return the input columns of a player's cards, filled one card at a time."""
    columns, first = [], 0
    for end in seen.ends.tolist():
        ranks, suits, every = np.zeros(13), np.zeros(4), np.zeros(52)
        for card in (int(card) for card in cards[first:end]):
            if card != NO_CARD:
                ranks[card // 4] += 1
                suits[card % 4] += 1
                every[card] += 1
        columns += [ranks, suits, every]
        first = end
    return np.concatenate(columns)


def strategy_at(state, parameters, node, cards):
    """Return a network's strategy [actions], by one pass through the whole network."""
    given = np.concatenate([naive_cards(state.view, cards), state.view.lines[node]])[None].astype(np.float32)
    output = state.network.forward(parameters, given)[-1][0].astype(np.float64)
    count = int(state.game.tree.arrays.count[node])
    positive = np.maximum(output[:count], 0)
    sigma = np.zeros(len(output))
    best = output[:count] == output[:count].max()
    sigma[:count] = positive / positive.sum() if positive.sum() > 0 else best / best.sum()
    return sigma


def cards_at(state, hands, deal, node):
    """Return the cards that the player to act at a node sees."""
    block = int(state.game.tree.arrays.block[node])
    return hands.visible_cards(block % 2, state.view.known[block // 2], state.view.cards)[deal]


def recurse(state, parameters, hands, deal, word, node, traverser, gained, plays):
    """Return a node's value for the traverser by recursion; record samples by (deal, node)."""
    tree, arrays = state.game.tree, state.game.tree.arrays
    if arrays.kind[node] == TERMINAL:
        return (1 - 2 * traverser) * (arrays.fixed[node] + arrays.showdown[node] * hands.result[deal])
    player, below = int(arrays.player[node]), list(tree.children(node))
    sigma = strategy_at(state, parameters[player], node, cards_at(state, hands, deal, node))
    if player != traverser:
        plays[deal, node] = sigma
        u, chosen = (random_at(word, node) >> 11) / 2**53, None
        for child, share in zip(below, sigma, strict=False):
            if chosen is None and u < share:
                chosen = child
            u -= share
        return recurse(state, parameters, hands, deal, word, chosen, traverser, gained, plays)
    values = [recurse(state, parameters, hands, deal, word, child, traverser, gained, plays) for child in below]
    mean = float(np.dot(sigma[: len(values)], values))
    gained[deal, node] = np.array([value - mean for value in values])
    return mean


@pytest.mark.parametrize("network", DEALT_NETWORKS)
@pytest.mark.parametrize("name", DEALT_GAMES)
def test_batched_traversals_equal_recursions_over_single_deals(name, network):
    """Compare every sample of both players with recursions on the same deals and draws."""
    state = trained(name, network).state
    parameters = [state.tables[f"network/player{player}"] for player in range(2)]
    hands, words = draw_hands(3, 100, 12, state.view.known[-1]), np.zeros(12, np.uint64)
    for traverser in range(2):
        fill_words(3, traverser, 100, np.zeros(4, np.uint64), words)
        assert words[5] == new_stream(3, traverser, ACTIONS, 105)[0]
        found = traverse(state.game.tree.arrays, state.strategies(tuple(parameters)), hands, words, traverser)
        gained, plays = {}, {}
        for deal in range(12):
            recurse(state, parameters, hands, deal, int(words[deal]), 0, traverser, gained, plays)
        for seen, wanted, scale in ((found[0], gained, 1000), (found[1], plays, 1)):
            assert sorted(zip(seen.deal.tolist(), seen.node.tolist(), strict=True)) == sorted(wanted)
            for deal, node, value in zip(*seen, strict=True):
                twin = wanted[deal, node]
                assert np.abs(value[: len(twin)] - twin).max() < 1e-4 * scale
        assert any(np.abs(value).max() > 1 for value in gained.values())


@pytest.mark.parametrize(
    ("column", "cell", "words"),
    [
        ("node", lambda player: 10**6, "memory/player0/node has a sample of node 1000000, but the tree of"),
        ("node", lambda player: np.flatnonzero(player == 1)[0], "names decisions of the other player"),
        ("cards", lambda player: 60, "names cards that do not exist"),
    ],
)
def test_invalid_samples_are_refused(column, cell, words):
    state = trained.__wrapped__(next(iter(DEALT_GAMES))).state  # a new state, because the test changes it
    state.check()
    state.tables[f"memory/player0/{column}"][0] = cell(state.game.tree.arrays.player)
    refused(words, state.check)


@pytest.mark.parametrize("reads_all", [False, True])
@pytest.mark.parametrize("make", ["plain", "branches"])
def test_a_split_network_equals_the_whole_network(make, reads_all):
    random = np.random.default_rng(4)
    sizes = (stacked_network, (13, 3, 3, 6, 8)) if make == "plain" else (branches, ((4, 4), 5, 3, 6, 8))
    net = sizes[0](*sizes[1], reads_all=reads_all)
    apart, parameters = SplitNetwork(net, 8), net.initial(new_stream(0, 0)).astype(np.float64)
    cards, bets = random.normal(size=(5, 8)), random.normal(size=(4, 5))
    added = apart.cards(parameters, cards)[:, None] + apart.bets(parameters, bets)[None]
    found = apart.rest(parameters, np.maximum(added, 0).reshape(20, -1))
    given = np.concatenate([np.repeat(cards, 4, axis=0), np.tile(bets, (5, 1))], axis=1)
    assert apart.width == 6
    assert np.abs(found - net.forward(parameters, given)[-1]).max() < 1e-12


@pytest.mark.parametrize("name", DEALT_GAMES)
def test_minibatches_equal_the_stored_samples(name):
    """Compare inputs, weights and targets, in units of the pot, sample by sample.

    No input depends on a card before it is dealt.
    """
    state = trained(name).state
    memory, held = state.memory(1)
    assert held == len(memory.node) == 150 < int(state.tables["counters/player1"][0])
    batch, numbers = state.batches(1, 7).next(), SampleOrder(held, 7).take(64)
    arrays, pot = state.game.tree.arrays, state.game.pot_chips
    assert pot == 150
    for row, sample in enumerate(numbers.tolist()):
        node, cards = int(memory.node[sample]), memory.cards[sample]
        known = state.view.known[int(arrays.block[node]) // 2]
        assert (cards[2 + known :] == NO_CARD).all()
        assert len(set(cards[: 2 + known].tolist()) - {NO_CARD}) == 2 + known
        assert (arrays.player[node], memory.weight[sample] in (1, 2, 3)) == (1, True)
        inputs = np.concatenate([naive_cards(state.view, cards), state.view.lines[node]])
        assert np.array_equal(batch.given[row], inputs.astype(np.float32))
        assert np.allclose(batch.total[row], memory.weight[sample] * memory.value[sample] / pot, rtol=1e-6)
        assert batch.legal[row].sum() == arrays.count[node]
    assert (memory.cards.nbytes + memory.node.nbytes + memory.weight.nbytes + memory.value.nbytes) / 150 <= 32


def single_hand_classes(state, count):
    """Return classes on both streets for a few hands, each of which is its own class."""
    hands, (first, last) = draw_hands(9, 0, count, state.view.known[-1]), (state.view.known[0], state.view.known[-1])
    return [
        Classes(hands.visible_cards(0, first, state.view.cards), np.zeros(count, np.int64)),
        Classes(hands.visible_cards(0, last, state.view.cards), np.arange(count)),
    ]


def test_every_hand_class_has_a_deal_and_its_preflop_class():
    """Check that every class has a deal of that class and the preflop class of its hand."""
    state = trained("flop hold'em").state
    first, last = hand_classes(state.game, state.view)
    cards = state.game.cards
    assert (len(first.cards), len(last.cards)) == (169, 1286792)
    for bucket in np.random.default_rng(0).integers(0, len(last.cards), 8).tolist():
        hand, board = sorted(last.cards[bucket, :2].tolist()), last.cards[bucket, 2:].tolist()
        combo = hand[1] * (hand[1] - 1) // 2 + hand[0]
        assert cards.bucket_row(1, 0, board)[combo] == bucket
        assert cards.bucket_row(0, 0, [])[combo] == last.before[bucket]
    game = trained("5-flop hold'em").state.game
    refused(r"with 5 board cards has .* cannot be made a table", hand_classes, game, view(game))
    for given in (game, trained("flop hold'em").state.game):
        coarse = replace(given, cards=replace(given.cards, buckets=np.array([[169, 169], [200, 200]])))
        check_options(given, DeepCfrConfig())
        refused("takes no buckets of the whole deck", check_options, coarse, DeepCfrConfig())


def test_the_tabulated_average_is_weighted_by_reach():
    """Compare with Steinberger 2019, equations 5 and 6, path by path.

    A network whose parameters are 0 plays uniformly.
    """
    state = trained("flop hold'em").state
    tree, arrays = state.game.tree, state.game.tree.arrays
    classes = single_hand_classes(state, 5)
    networks = [state.networks(player) for player in range(2)]
    assert [[weight for weight, _ in mine] for mine in networks] == [[1, 2, 3], [1, 2, 3]]
    strategy = Tabulation(state, [classes] * 2).strategy(networks)
    for node in tree.decisions.tolist():
        block, row = int(arrays.block[node]), int(arrays.row[node])
        street, player = divmod(block, 2)
        count, slot = int(arrays.count[node]), int(arrays.slot[node])
        for hand in range(5):
            sums = np.zeros(count)
            for weight, parameters in networks[player]:
                reach = weight
                for over, below in pairwise(tree.path(node)):
                    if arrays.kind[over] == DECISION and arrays.player[over] == player:
                        seen = classes[int(arrays.block[over]) // 2].cards[hand]
                        reach *= strategy_at(state, parameters, over, seen)[below - int(arrays.first[over])]
                sums += reach * strategy_at(state, parameters, node, classes[street].cards[hand])[:count]
            wanted = sums / sums.sum() if sums.sum() > 0 else np.full(count, 1 / count)
            found = strategy.probability[block][hand, slot : slot + count]
            assert np.abs(found - wanted).max() < 1e-4
            assert strategy.weight[block][hand, row] == pytest.approx(sums.sum(), abs=1e-4)
        cards = classes[street].cards
        found, weight = Networks(state.game, state.config, state.tables).rows(node, cards)
        wanted = strategy.probability[block][:, slot : slot + count]
        assert np.abs(weight - strategy.weight[block][:, row]).max() < 1e-4
        assert np.abs(weight[:, None] * (found - wanted)).max() < 1e-3
