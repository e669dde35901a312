"""`tools/bench sizes`: EV that the sizes of `--bets auto:N` lose on spots of a policy.

Spots are drawn by self-play of the policy. A loss is that of one player against an opponent with the fine menu. The
player has the chosen sizes at decisions with a choice, and the fine menu elsewhere. Seconds are processor time.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import rich_click as click

from abstraction.cards import cards_text, combo_index
from mccfr.cards.card_lists import joint_weight
from mccfr.cards.endgame_cards import endgame_cards
from mccfr.config.game_tables import HoldemGame
from mccfr.config.spot_table import AVERAGING_POWER
from mccfr.games.game import Game
from mccfr.games.line_sizes import line_tree
from mccfr.policy.strategy_profile import Behaviour
from mccfr.runs.results.line_spot import game_config, spot_behind
from mccfr.runs.results.targets import Reference, open_source
from mccfr.runs.session.spot_sizes import TypedSizes, size_choice
from mccfr.solvers.public.best_response import FOLLOW, RESPOND, Walk
from mccfr.solvers.public.merged_rows import in_dtype
from mccfr.solvers.public.public_tree import public_tree
from mccfr.solvers.public.size_choice import SizeChoice, side_by_side
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.variants import variant
from mccfr.tables.table_layout import table_name
from mccfr.trees.betting_lines import line_text
from mccfr.trees.compiled import DECISION, CompiledTree
from mccfr.trees.street_amounts import street_line, tree_start

_STREETS = {"rivers": 3, "turns": 2}
_SIZES = {3: ("auto:{}", "auto:{}"), 2: ("auto:{}/75%", "allin")}
"""Bets and raises by street; on turns the other sizes are the same everywhere."""
_RIVERS_OF_TURN = 12
_LEAST_WEIGHT = 0.03  # of a range's largest: rarer hands are left out
_TO, _NEAR = 0.003, 0.002  # exploitability of timed solutions and of measured values, in pots
_MOST = 600  # iterations of a solution
_SINGLES = 200  # iterations of the comparison of single sizes


@click.command("sizes")
@click.argument("policy", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--rivers", default=200, show_default=True, help="Number of rivers.")
@click.option("--turns", default=50, show_default=True, help="Number of turns, each with 12 rivers.")
@click.option("--most", default=2.0, show_default=True, help="Largest stack in pots; larger ones are cut.")
@click.option("--seed", default=0, show_default=True, help="Seed of the random spots.")
def sizes(policy: Path, out: Path, rivers: int, turns: int, most: float, seed: int) -> None:
    """Measure auto:1 and auto:2, append each spot to OUT as a line of JSON, and print a table by street."""
    config, source = game_config(policy), open_source(Reference(policy))
    assert isinstance(config, HoldemGame)
    random, rows = np.random.default_rng(seed), list[dict[str, Any]]()
    counts = {"rivers": rivers, "turns": turns}
    for name in counts:  # loads kernels, untimed
        measured(drawn_spot(source, config, _STREETS[name], 0.5, random), _STREETS[name], singles=name == "rivers")
    spots = [(number / count, name, number) for name, count in counts.items() for number in range(count)]
    for _, name, number in sorted(spots):
        spot = drawn_spot(source, config, _STREETS[name], most, random)
        singles = name == "rivers" and number % 4 == 0
        rows.append({"street": name, "board": spot["board"], **measured(spot, _STREETS[name], singles=singles)})
        with out.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
    click.echo(table(rows))


def drawn_spot(
    source: Behaviour, config: HoldemGame, street: int, most: float, random: np.random.Generator
) -> dict[str, Any]:
    """Return a spot at the start of a street, as keys of `[game]`; both players have chips left."""
    tree, cards = source.game.tree, source.game.cards
    dealing, arrays = cards.at_table(), tree.arrays
    while True:
        deck, node = random.permutation(52).tolist(), 0
        hands, board = [combo_index(*sorted(deck[2 * k : 2 * k + 2])) for k in range(2)], deck[4:9]
        while arrays.kind[node] == DECISION and arrays.block[node] // 2 < street:
            here, player = divmod(int(arrays.block[node]), 2)
            bucket = dealing.bucket_row(here, player, tuple(board[: cards.cards_on(here)]))[hands[player]]
            share = source.probabilities(node, int(bucket))
            node = int(arrays.first[node]) + int(random.choice(len(share), p=share / share.sum()))
        if arrays.kind[node] != DECISION:
            continue
        line = street_line(line_text(tree, node), tree_start(tree))
        spot, _ = spot_behind(source, config, line, cards_text(board[: cards.cards_on(street)]))
        ranges = {key: np.asarray(weights) / max(weights) for key, weights in spot["ranges"].items()}
        ranges = {key: np.where(weights < _LEAST_WEIGHT, 0.0, weights).tolist() for key, weights in ranges.items()}
        stack = min(spot["effective_stack"], round(most * spot["pot"]))
        return {**spot, "ranges": ranges, "effective_stack": stack}


def measured(spot: Mapping[str, Any], street: int, *, singles: bool) -> dict[str, Any]:
    """Return losses in per cent of the pot and processor seconds of one spot.

    singles  also compare the single size of the first bet with the best single size
    """
    choices = {count: _choice(spot, street, count) for count in (1, 2)}
    game, fine = choices[1].spot, choices[1].menus.fine
    cards = game.cards.listed()
    if street == _STREETS["turns"]:  # on rivers other than those of the choice
        game = replace(game, cards=endgame_cards(cards.board_cards[0][0].tolist(), cards.reach, 2, _RIVERS_OF_TURN))
    tree = line_tree(fine, lambda _, state: fine.raise_targets(state))
    value, seconds = _solved(game, tree.tree)
    row: dict[str, Any] = {"pots": spot["effective_stack"] / spot["pot"], "fine_seconds": seconds}
    row["decisions"] = len(tree.state)
    for count, choice in choices.items():
        began = time.process_time()
        chosen = _choice(spot, street, count).choose(lambda _: None)
        took = time.process_time() - began
        small = line_tree(fine, lambda at, state, c=chosen, m=choice: c.get(at) or m.menus.default.raise_targets(state))
        row[f"seconds_{count}"] = [took, _solved(game, small.tree, _TO)[1]]
        losses = []
        for player in range(2):

            def own(at: str, state: Any, sizes: Mapping[str, Any] = chosen, player: int = player) -> Sequence[float]:
                return sizes[at] if at in sizes and state.player == player else fine.raise_targets(state)

            loss = (value - _solved(game, line_tree(fine, own).tree)[0]) * (1 - 2 * player)
            losses.append(100 * loss / game.pot_chips)
        row[f"loss_{count}"] = losses
        if count == 1 and singles and "" in chosen:
            values, amounts = _single_values(game, tree.tree), fine.raise_targets(tree.state[""])
            row["single_loss"] = 100 * (max(values) - values[amounts.index(chosen[""][0])]) / game.pot_chips
    return row


def _choice(spot: Mapping[str, Any], street: int, count: int) -> SizeChoice:
    bets, raises = (text.format(count) for text in _SIZES[street])
    return size_choice(spot, TypedSizes(bets, raises, {}), street, 1)


def _solved(game: Game, tree: CompiledTree, to: float = _NEAR) -> tuple[float, float]:
    """Return player 0's value in chips, and the processor seconds to `_TO`."""
    began, seconds = time.process_time(), None
    cfr = _solver(game, tree)
    while True:
        cfr.iterate(max(20, cfr.iteration // 4))
        walk = _walk(cfr)
        first, second = walk.values(0), walk.values(1)
        gap = float(first[RESPOND] + second[RESPOND]) / walk.joint_weight / 2 / game.pot_chips
        if seconds is None and gap <= _TO:
            seconds = time.process_time() - began
        if gap <= to or cfr.iteration >= _MOST:
            return float(first[FOLLOW]) / walk.joint_weight, seconds or time.process_time() - began


def _solver(game: Game, tree: CompiledTree) -> VectorCfr:
    game = replace(game, tree=tree)
    public = public_tree(game, some=True)._replace(joint_weight=joint_weight(game.cards.listed()))
    return VectorCfr(game, variant("dcfr", averaging_power=AVERAGING_POWER), "float32", 1, public=public)


def _walk(cfr: VectorCfr) -> Walk:
    blocks = range(2 * cfr.public.streets)
    sums = [cfr.tables.get(table_name("strategy_sum", block), np.zeros((1, 1), np.float32)) for block in blocks]
    return Walk(in_dtype(cfr.public, np.float32), sums, sums=True)


def _single_values(game: Game, tree: CompiledTree) -> list[float]:
    """Return player 0's values in chips with each single size of the first bet, fine menus elsewhere."""
    bets = [node for node in tree.children(0) if tree.label[node][0] == "r"]
    copies = side_by_side(tree, 0, [[node for node in bets if node != bet] for bet in bets], 0)
    cfr = _solver(game, copies)
    cfr.tables[table_name("regret", 0)][: len(bets)] = 1e25
    cfr.iterate(_SINGLES)
    values = _walk(cfr).hand_values(cfr.game, 0, [0]).actions[0]
    cards = game.cards.listed()
    found: list[float] = (values @ cards.reach[0] / joint_weight(cards)).tolist()
    return found


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of docs/measured/spots.md: losses in % of the pot, over spots and players."""
    lines = ["| | mean | 95th percentile | worst | choice, small tree: time / fine |", "|---|---|---|---|---|"]
    for street in dict.fromkeys(row["street"] for row in rows):
        here = [row for row in rows if row["street"] == street]
        fine = sum(row["fine_seconds"] for row in here)
        for count in (1, 2):
            loss = np.concatenate([row[f"loss_{count}"] for row in here])
            took = np.sum([row[f"seconds_{count}"] for row in here], axis=0) / fine
            lines.append(_line(f"{len(here)} {street}, auto:{count}", loss, f"{took[0]:.1%}, {took[1]:.1%}"))
        singles = np.array([row["single_loss"] for row in here if "single_loss" in row])
        if len(singles):
            lines.append(_line(f"{len(singles)} {street}, first bet against the best single size", singles, ""))
    return "\n".join(lines)


def _line(name: str, loss: Any, seconds: str) -> str:
    return f"| {name} | {loss.mean():.3f} | {np.percentile(loss, 95):.3f} | {loss.max():.3f} | {seconds} |"
