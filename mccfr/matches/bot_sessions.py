"""Plays at servers and deals matches: implements `mccfr bot`, `mccfr dealer` and `mccfr play`."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from abstraction.kernels.compiling import told_of_compiling
from mccfr.common.signals import SignalInterrupt, signals_collected
from mccfr.config.game_tables import HoldemGame, Menu
from mccfr.evaluation.samples import StoppedError
from mccfr.games.betting import BettingRules, amount_text
from mccfr.games.betting_tree import build_tree
from mccfr.games.holdem_betting import configured_rules
from mccfr.games.money import money_of
from mccfr.games.translation import SeatTranslation, Translation, real_betting
from mccfr.matches.acpc import acpc_rules, game_text
from mccfr.matches.acpc_bot import play_acpc
from mccfr.matches.acpc_log import LoggedHand, MatchLog, bot_replay
from mccfr.matches.acpc_session import AcpcSession, FinishedHand
from mccfr.matches.dealer import (
    Clock,
    DealerSeat,
    LocalSeat,
    MatchDealer,
    MatchPlan,
    Score,
    replay_of,
    score_of,
    score_text,
    scores,
)
from mccfr.matches.dealer_connections import DealerPort, listening
from mccfr.matches.dealer_seat import RemoteSeat, seat_all
from mccfr.matches.gtowizard import AT_ONCE, UnknownResultError, WizardServer, finish_open, play_wizard_hands, read_key
from mccfr.matches.hand_files.writing import PHHS, STARS, check_hands_output, write_hands
from mccfr.matches.json_http import http_post
from mccfr.matches.json_server_hand import check_game
from mccfr.matches.match import figure_fields
from mccfr.matches.phh_format import Hand
from mccfr.matches.players import AS_WRITTEN, PlayManner, distinct_names, holdem_of, open_player
from mccfr.matches.slumbot import SlumbotSession
from mccfr.matches.socket_lines import FirstMessages
from mccfr.matches.terminal_player import Ask, Tell, history, play_person
from mccfr.play.player import Betting, Player
from mccfr.play.resolving.resolving_seat import ResolvingSpec
from mccfr.runs.reporter import COMPILING
from storage.cleanup import closed_after
from storage.deferred_signals import signals_deferred

Say = Callable[[str], None]


@dataclass(frozen=True)
class ServerPlayer:
    """A player of no-limit hold'em that can play at servers and dealers.

    name     as the user gave it
    player   the `Player`, which chooses actions
    game     stacks and blinds with which it plays
    rules    betting rules of this game
    another  function that takes a seed and creates another player of the same strategy
    """

    name: str
    player: Player
    game: HoldemGame
    rules: BettingRules
    another: Callable[[int], Player] | None = None

    def players(self, count: int) -> list[Player]:
        """Return a list of `count` players: this one, and others of equal strategy and seed.

        Given the same hand number, cards and betting, they all make the same choices.
        """
        assert self.another is not None
        return [self.player, *(self.another(self.player.seed) for _ in range(count - 1))]


def server_player(
    name: str,
    manner: PlayManner = AS_WRITTEN,
    seed: int = 0,
    game: HoldemGame | None = None,
    *,
    say: Say = lambda _: None,
) -> ServerPlayer:
    """Open a policy, run or program as a player of no-limit hold'em; compile its numba code.

    name    directory of a policy or run, or name of a program
    manner  changes to how a policy or run plays, such as purified (always the likeliest action)
    seed    seed of the player's random choices
    game    stacks and blinds of the match; None: the policy's, or for a program stacks of 20,000 and blinds 50/100
    say     called with a message if anything is compiled, which takes up to a minute

    Raises `ValueError` for an unknown name, a policy for another game, or a manner for a program. Also for a game with
    antes, unequal stacks or fractions of chips. Raises `DamagedError` or `UnreadableError` if a file of the policy or
    run is damaged or cannot be read.
    """
    opened = open_player(name, manner)
    spec, own_game = opened.contender.spec, holdem_of(opened.table)
    if spec.game is None:
        game = game or HoldemGame()
        betting: Betting = _betting(game)
    elif own_game is None:
        raise ValueError(f"{name} plays {spec.game.name}: servers and dealers play whole no-limit hold'em")
    else:
        betting = real_betting(spec.game)
        if game is not None and _stakes(game) != _stakes(own_game):
            raise ValueError(f"{name} is for {game_text(own_game)}, and the table has {game_text(game)}")
        game = own_game

    def another(seed: int) -> Player:
        return spec.player(betting, seed=seed)

    created = ServerPlayer(name, another(seed), game, acpc_rules(game, name), another)
    _prepare(created.player, say)
    return created


def _prepare(player: Player, say: Say) -> None:
    """Compile a player's numba functions, with one message if anything is compiled."""
    reported = list[bool]()

    def compiling(seconds: int | None) -> None:
        if seconds is not None and not reported:
            reported.append(True)
            say(f"{COMPILING}: up to a minute, before the first hand")

    with told_of_compiling(compiling):
        player.prepare()


def _stakes(game: HoldemGame) -> tuple[float, ...]:
    return game.seats, game.stack, *game.blinds, game.ante


def _betting(game: HoldemGame) -> Translation:
    """Return the action translation with which a program follows a game's betting.

    A translation needs a betting tree. Programs play without one, so a small tree with all-ins only is enough.
    """
    rules = acpc_rules(game, "the table")
    small = structs.replace(game, menu=Menu(first=("allin",), later=(), max_bets=1, limp=False))
    return (Translation if game.seats == 2 else SeatTranslation)(build_tree(configured_rules(small)), rules)


class _HandRecorder:
    """Records a bot's finished hands and, if a file is given, writes them to it.

    The file is a `.phhs` or PokerStars file, written at the end, or a match log, written hand by hand.
    """

    def __init__(self, player: ServerPlayer, log: Path | None, opponent: str) -> None:
        others = [opponent] if player.game.seats == 2 else [f"{opponent}-{n}" for n in range(1, player.game.seats)]
        self._names, self._game, self._path = (player.name, *others), player.game, log
        self.hands, self.won = list[LoggedHand](), list[float]()
        head = {"bot": player.name, "against": opponent, "stack": player.game.stack, "blinds": list(player.game.blinds)}
        self._written = [name.translate({ord(mark): "-" for mark in ":|"}) for name in self._names]
        self._log = None
        if log is not None and log.name.endswith((PHHS, STARS)):
            check_hands_output(log, player.game)
        elif log is not None:
            self._log = MatchLog(log, head, bot_replay(player.rules, self._written))

    def add(self, hand: FinishedHand) -> None:
        """Record a hand, and write it to the match log if any; `RuntimeError` if that fails."""
        seats = len(self._written)
        names = tuple(self._written[(position - hand.position) % seats] for position in range(seats))
        with signals_deferred():  # a counted hand must be in the log
            self.hands.append(LoggedHand(hand.number, hand.betting, hand.holes, hand.board, hand.chips, names))
            if hand.chips is not None:
                self.won.append(hand.chips[hand.position])
            try:
                self._write(self.hands[-1])
            except OSError as error:  # not an error of the connection
                raise RuntimeError(f"{error.filename}: {error.strerror}: the match ends here") from None

    def _write(self, hand: LoggedHand) -> None:
        if self._log is None:
            return
        if self._log.hands and hand.number <= self._log.hands[-1].number:
            self._log.mark_restart()
        self._log.add(hand)

    @contextmanager
    def writing_hands(self) -> Iterator[None]:
        """Write the file when the `with` block ends, also after an error; raises `StoppedError` at a signal."""
        with closed_after(self.close):
            try:
                with signals_collected(ignored=0):
                    yield
            except SignalInterrupt as stop:
                advice = "they are not kept without --log FILE" if self._path is None else f"they are in {self._path}"
                raise StoppedError(stop.number, f"{len(self.hands):,} hands; {advice}") from None

    def close(self) -> None:
        """Close the log, or write the hands of a `.phhs` or PokerStars file."""
        if self._log is not None:
            self._log.close()
        elif self._path is not None and self.hands:
            write_hands(self._path, [hand.hand() for hand in self.hands], self._game)

    def record(self) -> dict[str, Any]:
        """Return the bot's total chips and mean per hand, as the dict that `--json` prints."""
        return _record(self._names, [score_of(self.won)], self._game)


def _record(names: Sequence[str], scores: Sequence[Score], game: HoldemGame) -> dict[str, Any]:
    """Return the first player's total chips and mean per hand, as the dict that `--json` prints.

    names   names of all players
    scores  scores of the first player, or of all. With three and more players the field `players` has an entry for
            each score
    """
    first, more = scores[0], len(names) > 2
    fields = {"a": names[0], "b": ", ".join(names[1:]), "hands": first.hands, "pairs": first.pairs}
    each = [
        {"name": name, "chips": score.chips, **figure_fields(score.mean, score.ci95, game.blinds[1])}
        for name, score in zip(names, scores, strict=False)
    ]
    return {
        **fields,
        **{key: value for key, value in each[0].items() if key != "name"},
        **({"players": each} if more else {}),
    }


def record_text(record: dict[str, Any]) -> str:
    """Return the result of a match as text for people: hands played, chips won, and mbb/g.

    record  result as `--json` prints it
    """
    text = f"{record['a']} against {record['b']}: {record['hands']:,} hands"
    kind = "deals" if "players" in record else "pairs"
    text += "" if record["pairs"] is None else f" in {record['pairs']:,} duplicate {kind}"
    if len(record.get("players", ())) > 1:
        return "\n".join([text, *(f"{player['name']}{_won_text(player)}" for player in record["players"])])
    return text + _won_text(record)


def _won_text(record: dict[str, Any]) -> str:
    """Return as text a player's total chips won and its mean winnings in mbb/g with 95 % interval."""
    text = f", {amount_text(record['chips'])} chips won"
    if record["mean_mbb"] is None:
        return text
    for key, title in (("", ""), ("aivat_", "AIVAT by the server ")):
        if record.get(f"{key}mean_mbb") is not None:
            low, high = record[f"{key}ci95_mbb"]
            text += f", {title}{record[f'{key}mean_mbb']:+.5g} mbb/g (95 %: {low:+.5g} to {high:+.5g})"
    return text


def run_acpc_bot(
    player: ServerPlayer, host: str, port: int, *, log: Path | None, patience: float, silence: float, say: Say
) -> dict[str, Any]:
    """Play a match at an ACPC server (`host`, `port`); return the dict that `--json` prints.

    log       file for the hands (`.phhs`, `.stars.txt` or a match log); None: they are not written
    patience  seconds to connect, at first and after a lost connection
    silence   seconds without a message after which the match ends

    Raises `TableError` if the server fails or breaks the protocol, `ConnectionError` if it is lost within a hand, and
    `StoppedError` at a signal.
    """
    recorder = _HandRecorder(player, log, "opponent")
    with recorder.writing_hands():
        session = AcpcSession(player.player, player.rules, recorder.add)
        play_acpc(session, host, port, patience=patience, silence=silence, say=say)
    return recorder.record()


def run_slumbot(
    player: ServerPlayer,
    url: str,
    hands: int,
    *,
    log: Path | None,
    silence: float,
    login: tuple[str, str] | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Play hands at a server with Slumbot's interface; return the dict that `--json` prints.

    log       file for the hands; None: they are not written
    silence   seconds to wait for a response
    login     (name, password) of a user of the server; None: without
    progress  called after each hand with the number of hands so far

    Raises `TableError` if the server fails, and `ConnectionError` if it is lost within a hand. Raises `ValueError` for
    other stacks or blinds than the server's or a bad address, and `StoppedError` at a signal.
    """
    check_game(player.game, player.name)
    session = SlumbotSession(player.player, player.rules, http_post(url, silence))
    recorder = _HandRecorder(player, log, "slumbot")
    with recorder.writing_hands():
        if login is not None:
            session.login(*login)
        for number in range(hands):
            recorder.add(session.play_hand(number))
            progress(number + 1)
    return recorder.record()


def run_gtowizard(
    player: ServerPlayer,
    url: str,
    key_file: Path,
    hands: int,
    *,
    log: Path | None,
    silence: float,
    say: Say = lambda _: None,
    progress: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Play hands at the GTO Wizard research server, five at once; return the dict for `--json`.

    Hands are logged and counted as they end. The dict includes the mean of the server's luck-adjusted chips (AIVAT).

    key_file  file with the user's key for the server
    log       file for the hands; None: they are not written
    silence   seconds to wait for a response
    progress  called after each hand with the number of hands so far

    Raises `TableError` if the server fails, and `ConnectionError` if it is lost within a hand. Raises `ValueError` for
    other stacks or blinds than the server's, a bad address or a missing key, and `StoppedError` at a signal.
    """
    check_game(player.game, player.name)
    post = http_post(url, silence, {"X-API-Key": read_key(key_file, say)})
    server, players = WizardServer(post, FirstMessages(say)), player.players(AT_ONCE)
    recorder, scores, unknown_count = _HandRecorder(player, log, "gtowizard"), list[float | None](), 0
    with recorder.writing_hands():
        if open_count := finish_open(players[0], player.rules, server):
            say(f"{open_count:,} hands that were in progress are played to their end, and not counted")
        for result in play_wizard_hands(players, player.rules, server, hands):
            if isinstance(result, UnknownResultError):
                say(f"{result}, and is not counted")
                unknown_count += 1
                continue
            recorder.add(result.hand._replace(number=len(recorder.hands)))
            scores.append(result.aivat)
            progress(len(recorder.hands))
        if unknown_count:
            finish_open(players[0], player.rules, server)
    return recorder.record() | _aivat_fields(scores, player.game) | {"unseen": unknown_count}


def _aivat_fields(scores: Sequence[float | None], game: HoldemGame) -> dict[str, Any]:
    """Return a result's fields `aivat_*`: the mean of the server's luck-adjusted chips (AIVAT).

    It is in chips and mbb per hand, with 95 % intervals. All are None unless every hand has a value.

    scores  the server's luck-adjusted chips of each hand; None if missing
    """
    known = [each for each in scores if each is not None]
    result = score_of(known) if len(known) == len(scores) else Score(0, 0.0, None, None, None)
    return figure_fields(result.mean, result.ci95, game.blinds[1], "aivat_")


def run_person(
    name: str,
    hands: int,
    manner: PlayManner = AS_WRITTEN,
    seed: int = 0,
    *,
    log: Path | None,
    ask: Ask,
    tell: Tell,
) -> None:
    """Let a person play against the policy or run `name` at a terminal; print the hands at the end.

    log   a `.phhs` or PokerStars file for the hands, no-limit hold'em only; None: they are not written
    ask   function that shows a prompt and returns the person's answer
    tell  function that prints a line

    Raises `ValueError` for fewer than one hand, or a program, which has no game. Also for a game without cards, or with
    cards as chance nodes of its tree.
    """
    if hands < 1:
        raise ValueError(f"hands = {hands}: at least 1 is needed")
    opened = open_player(name, manner, programs=False)
    spec, config = opened.contender.spec, holdem_of(opened.table)
    assert spec.game is not None
    if log is not None:
        if config is None:
            raise ValueError(f"{log}: hands are written of whole no-limit hold'em only: leave --log out")
        check_hands_output(log, config)
    if isinstance(spec, ResolvingSpec) and config is not None:
        when = ", once two players are left whose actions its tree has" if config.seats > 2 else ""
        tell(f"From the {spec.settings.street} on the policy re-solves its hands{when}: an action may take seconds.")
    played = list(play_person(spec, spec.game, hands, seed, ask, tell))
    if not played:
        tell("\nNo hand was played to its end.")
        return
    won, money = sum(hand.won for hand in played), money_of(spec.game)
    sign = "+" if won > 0 else "-" if won < 0 else ""
    tell(f"\nYou played {len(played)} hand{'s' * (len(played) != 1)}: {sign}{money.text(abs(won))} (seed {seed})")
    for number, hand in enumerate(played, 1):
        tell(history(spec.game, number, hand))
    if log is not None and config is not None:
        chairs = distinct_names(["you", *["policy"] * (config.seats - 1)])
        records = [
            Hand(
                hand.line,
                hand.hands,
                hand.board,
                [chairs[(seat - hand.position) % config.seats] for seat in range(config.seats)],
            )
            for hand in played
        ]
        write_hands(log, records, config)


@contextmanager
def _seats(
    plan: MatchPlan, local_players: Sequence[ServerPlayer], host: str, ports: Sequence[int], wait: float, say: Say
) -> Iterator[list[DealerSeat]]:
    """Yield a match's players, as `DealerSeat`: those of this process, then those that connect.

    Waits up to `wait` seconds until all have connected. Connections and ports are closed when the `with` block ends.
    """
    local: list[DealerSeat] = [LocalSeat(AcpcSession(each.player, each.rules)) for each in local_players]
    names = plan.names[len(local_players) :]
    ports_used, remote = list[DealerPort](), list[RemoteSeat]()
    try:
        for port in ports[: len(names)]:
            ports_used.append(DealerPort(listening(host, port), say))
        seats_of_port: list[list[RemoteSeat]] = [[] for _ in ports_used]
        for number, name in enumerate(names):
            place = min(number, len(ports_used) - 1)
            remote.append(RemoteSeat(ports_used[place], seats_of_port[place], name, say))
        for door, seats in zip(ports_used, seats_of_port, strict=True):
            say(f"waiting for {' and '.join(seat.name for seat in seats)} at {door.where}")
        seat_all(remote, wait)
        yield [*local, *remote]
    finally:
        for seat in remote:
            seat.close()
        for door in ports_used:
            door.close()


def run_dealer(
    plan: MatchPlan,
    local_players: Sequence[ServerPlayer] = (),
    *,
    host: str = "127.0.0.1",
    ports: Sequence[int] = (0,),
    clock: Clock = Clock(),  # noqa: B008  (frozen)
    wait: float = 600.0,
    log: Path | None = None,
    phhs: Path | None = None,
    say: Say = lambda _: None,
    warn: Say = lambda _: None,
) -> tuple[list[Score], dict[str, Any]]:
    """Deal a match, or the rest of one; return the players' scores and the dict for `--json`.

    local_players  players of this process. The others connect to `ports`: one port for all, seated in order of arrival,
                   or one port for each
    clock          time limits of the players
    wait           seconds for the players to connect
    log            path of the match log, which is continued if it exists
    phhs           path of a file of hand histories, written at the end
    say            called with messages about players; `warn` is called with warnings about invalid answers

    Raises `TableError` if a player is too slow or breaks the protocol, or a port is taken. Raises `StoppedError` at a
    signal.
    """
    if phhs is not None:
        check_hands_output(phhs, plan.game)
    match_log = None if log is None else MatchLog(log, plan.fields(), replay_of(plan))
    hands = list[LoggedHand]() if match_log is None else match_log.hands
    try:
        if len(hands) < plan.hands:
            if hands:
                say(f"going on from {log}, hand {len(hands):,} of {plan.hands:,}")
            with signals_collected(ignored=0), _seats(plan, local_players, host, ports, wait, say) as seats:
                dealer = MatchDealer(plan, seats, clock, warn)
                for number in range(len(hands), plan.hands):
                    played = dealer.play(number)
                    if match_log is None:
                        hands.append(played)
                    else:
                        with signals_deferred():  # a counted hand must be in the log
                            match_log.add(played)
        final = scores(plan, hands)
        if match_log is not None:
            match_log.close_with(score_text(plan, final))
    except SignalInterrupt as stop:
        advice = "give --log FILE to go on later" if log is None else f"the same command goes on from {log}"
        raise StoppedError(stop.number, f"{len(hands):,} of {plan.hands:,} hands; {advice}") from None
    finally:
        if match_log is not None:
            match_log.close()
    if phhs is not None:
        write_hands(phhs, [hand.hand() for hand in hands], plan.game)
    return final, _record(plan.names, final, plan.game)
