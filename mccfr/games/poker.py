"""Small poker games: Kuhn, Leduc, limit and no-limit poker on small decks, AKQ and clairvoyance.

Sources: Kuhn 1950; Southey et al. 2005 (Leduc); the betting rules of the ACPC dealer (universal_poker in OpenSpiel);
Ankenman & Chen 2006, "The Mathematics of Poker" (half-street AKQ and clairvoyance games).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite

import numpy as np

from abstraction.cards import RANKS
from abstraction.small_deck_hands import DeckListing
from mccfr.cards.card_lists import ListedCards
from mccfr.cards.small_deck_cards import small_deck
from mccfr.config.game_tables import AkqGame, ClairvoyanceGame, KuhnGame, LeducGame, Menu, PokerGame
from mccfr.games.betting import BettingRules, BettingState
from mccfr.games.betting_tree import MAX_BLOCKS, build_tree
from mccfr.games.full_betting import small_rules
from mccfr.games.game import Game
from mccfr.games.menu import PLAYER_NAMES, STREET_NAMES, MenuGame, check_opening, line_edits, menu_targets
from mccfr.games.seat_histories import seat_game

_KING = RANKS.index("K")
Targets = Callable[[BettingState], Sequence[float]]


def kuhn(config: KuhnGame) -> Game:
    """Build Kuhn poker; for two players, player 0's value is -1/18 chip.

    With more players (Risk & Szafron 2010), the others call or fold in turn after a bet, as in OpenSpiel's
    `kuhn_poker(players=N)`.
    """
    players, ranks = config.players, config.players + 1
    rules = BettingRules(
        (1,) * players, (0,), lambda state: [state.to_call + 1] if state.bets == 0 else [], raise_text="b"
    )
    letters = RANKS[_KING + 1 - ranks : _KING + 1]
    if players > 2:
        return seat_game("kuhn", rules, DeckListing(ranks, 1, 1, (0,)), letters=letters, merge_suits=False)
    return Game("kuhn", build_tree(rules), small_deck(ranks, 1, 1, [0], names=letters), pot_chips=2)


def leduc(config: LeducGame) -> Game:
    """Build Leduc poker for two and more players, with unlimited stacks.

    By default N players have a deck of N + 1 ranks. With three and more players this is OpenSpiel's
    `leduc_poker(players=N)`.

    Raises `ValueError` for invalid parameters.
    """
    if len(config.bets) != 2 or any(size <= 0 for sizes in config.bets for size in sizes):
        raise ValueError(f"game.bets = {config.bets!r}: expected two lists of sizes above 0, one for each round")
    if config.raises < 0:
        raise ValueError(f"game.raises = {config.raises} is not allowed: it must be at least 0")
    sizes = [sorted(round_sizes) for round_sizes in config.bets]

    def targets(state: BettingState) -> list[float]:
        return [state.to_call + size for size in sizes[state.street]] if state.bets < config.raises else []

    ranks = config.players + 1 if config.ranks is None else config.ranks
    rules = BettingRules((1,) * config.players, (0, 0), targets, board_cards=(0, 1))
    letters = "JQK" if ranks == 3 else None
    if config.players > 2:
        deck = DeckListing(ranks, config.suits, 1, (0, 1))
        return seat_game("leduc", rules, deck, letters=letters, merge_suits=config.merge_suits)
    cards = small_deck(ranks, config.suits, 1, [0, 1], merge_suits=config.merge_suits, names=letters)
    return Game("leduc", build_tree(rules), cards, pot_chips=2)


def poker(config: PokerGame) -> Game:
    """Build limit or no-limit poker on a small deck, by the rules of the ACPC dealer.

    Raises `ValueError` for invalid parameters.
    """
    rules, menu = small_rules(config), config.menu
    seats = len(rules.put_in)
    if menu is not None and seats > 2:
        raise ValueError(f"game.menu is for two seats: leave it out with {seats} seats, and give stacks of few chips")
    if menu is not None:
        edits = line_edits(menu, rules.line_start)
        rules = replace(rules, raise_targets=_menu_targets(config, menu, rules), limp=menu.limp is True, **edits)
        _check_limp(config, menu, rules)
    else:
        kind = _limit_targets if config.raise_sizes else _no_limit_targets
        rules = replace(rules, raise_targets=kind(config, rules))
    if seats > 2:
        deck = DeckListing(config.ranks, config.suits, config.hole_cards, tuple(config.board_cards))
        return seat_game("poker", rules, deck, merge_suits=config.merge_suits)
    cards = small_deck(
        config.ranks, config.suits, config.hole_cards, config.board_cards, merge_suits=config.merge_suits
    )
    return Game(
        "poker",
        build_tree(rules),
        cards,
        pot_chips=sum(rules.put_in),
        real_rules=None if menu is None else small_rules(config),
    )


def _menu_targets(config: PokerGame, menu: Menu, rules: BettingRules) -> Targets:
    """Return the function that lists the amounts that `[game.menu]` allows to raise to.

    It takes a betting state. In the menu's keys, streets have hold'em's names from preflop on, and players are called
    big_blind and button.

    rules  betting rules of the game, from which streets and stack are taken

    Raises `ValueError` for an invalid menu, keys that a menu excludes, more than four streets, and an infinite stack.
    """
    streets, stack = rules.streets, rules.stack
    if config.raise_sizes or config.max_raises:
        raise ValueError(
            "game.menu is for no-limit poker, and limits the number of bets by max_bets: leave out raise_sizes and "
            "max_raises, or the menu"
        )
    if streets > len(STREET_NAMES):
        raise ValueError(
            f"game.board_cards = {list(config.board_cards)}: with game.menu there are at most {len(STREET_NAMES)} "
            f"streets, {', '.join(STREET_NAMES)}"
        )
    if not isfinite(stack):
        raise ValueError(f"game.stack = {stack}: a menu needs a finite stack")
    blinds = config.blinds
    return menu_targets(
        menu,
        MenuGame(
            stack,
            max(blinds) if blinds else None,
            streets=streets,
            players=_names(config),
            whole_chips=all(float(amount).is_integer() for amount in (stack, *blinds, *config.antes)),
        ),
    )


def _names(config: PokerGame) -> tuple[str, ...]:
    """Return the configuration names of players 0 and 1: big_blind and button, or the reverse.

    Player 0 is the button if its blind is smaller than player 1's.
    """
    small_first = bool(config.blinds) and config.blinds[0] < config.blinds[1]
    return PLAYER_NAMES[::-1] if small_first else PLAYER_NAMES


def _check_limp(config: PokerGame, menu: Menu, rules: BettingRules) -> None:
    """Raise `ValueError` if `game.menu.limp = false` has no effect, or leaves only a fold."""
    if not menu.limp and not rules.start().facing:
        raise ValueError(
            "game.menu.limp = False is not allowed: the first player to act has posted the larger blind, so "
            "there are no limps; leave it out, or change game.first_player"
        )
    check_opening(menu, rules, _names(config))


def _limit_targets(config: PokerGame, rules: BettingRules) -> Targets:
    """Return the function from a betting state to the one amount of a limit raise, or none at the maximum.

    Raises `ValueError` unless the table `config` gives a size and a maximum of raises for each street.
    """
    sizes, most, streets = list(config.raise_sizes), list(config.max_raises), rules.streets
    if len(sizes) != streets or len(most) != streets or min(sizes) <= 0 or min(most) < 0:
        raise ValueError(f"game: limit poker needs raise_sizes and max_raises, one for each of {streets} streets")

    def targets(state: BettingState) -> list[float]:
        if state.bets >= most[state.street]:
            return []
        return [min(state.to_call + sizes[state.street], rules.stack_of(state.player))]

    return targets


def _no_limit_targets(config: PokerGame, rules: BettingRules) -> Targets:
    """Return the function from a betting state to all legal whole amounts of a no-limit raise.

    Raises `ValueError` for stacks that are not whole, and invalid `max_raises` in the table `config`.
    """
    if config.max_raises and len(config.max_raises) != rules.streets:
        raise ValueError(f"game: no-limit poker takes max_raises for each of {rules.streets} streets, or none")
    if config.max_raises and min(config.max_raises) < 0:
        raise ValueError(f"game.max_raises = {list(config.max_raises)} is not allowed: numbers must be at least 0")
    if not all(isfinite(stack) and stack == int(stack) for stack in (rules.stack, *rules.stacks)):
        raise ValueError(
            f"game.stack = {config.stack}: no-limit poker, where every whole amount is a raise, needs whole stacks"
        )

    def targets(state: BettingState) -> Sequence[float]:
        if config.max_raises and state.bets >= config.max_raises[state.street]:
            return []
        stack = int(rules.stack_of(state.player))
        return range(int(min(state.lowest_raise, stack)), stack + 1)

    return targets


def akq(config: AkqGame) -> Game:
    """Build the half-street AKQ game: only player 0 may bet; its value for player 0 is 1/18 chip.

    Each player holds one of three cards and has put 1 chip into the pot. Player 0 bets 1 chip or checks; a check leads
    to the showdown. Player 1 calls or folds to the bet.
    """
    rules = BettingRules((1, 1), (0,), lambda state: [2] if state.bets == 0 else [], check_closes=True)
    return Game("akq", build_tree(rules), small_deck(3, 1, 1, [0], names="QKA"), pot_chips=2)


def clairvoyance(config: ClairvoyanceGame) -> Game:
    """Build the clairvoyance game, in which player 0 knows who holds the better hand.

    On each street only player 0 may bet, `config.bet` times the pot. The starting pot is 1 chip that neither player has
    put in, so winning it is profit in player 0's value.

    Raises `ValueError` for invalid parameters.
    """
    if config.streets < 1 or config.bet <= 0 or not 0 < config.probability < 1:
        raise ValueError(
            f"game: streets = {config.streets}, bet = {config.bet}, probability = {config.probability}: "
            "streets must be at least 1, bet above 0, probability between 0 and 1"
        )
    if config.streets > (most := MAX_BLOCKS // 2):
        raise ValueError(f"game.streets = {config.streets:,} is not allowed: a game has at most {most} streets")

    def targets(state: BettingState) -> list[float]:
        # The pot holds 2·to_call if there is no bet to call; the second player never bets.
        return [state.to_call * (1 + 2 * config.bet)] if state.player == 0 else []

    rules = BettingRules((0.5, 0.5), (0,) * config.streets, targets, check_closes=True)
    hands = ["nuts", "bluffcatcher", "air"]
    bucket = np.array([[[0, -1, 1]], [[-1, 0, -1]]], np.int32)
    cards = ListedCards(
        np.full((3, 2), -1, np.int16),
        hands,
        np.array([[config.probability, 0, 1 - config.probability], [0, 1, 0]], np.float64),
        [np.zeros((1, 0), np.int16)] * config.streets,
        [np.zeros(1, np.int32)] * config.streets,
        np.array([[2, 1, 0]], np.int32),
        [bucket] * config.streets,
        np.array([[2, 1]] * config.streets, np.int64),
    )
    return Game("clairvoyance", build_tree(rules), cards, offset_chips=0.5, pot_chips=1)
