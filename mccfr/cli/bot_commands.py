"""Commands in which policies play outside of matches: bot, dealer, play."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from mccfr.cli.shared_options import (
    Count,
    Duration,
    answer,
    code_option,
    hands_log_option,
    json_option,
    manner_options,
    path_type,
    refuse_options_without_effect,
    say,
)

if TYPE_CHECKING:
    from mccfr.matches.bot_sessions import ServerPlayer

_seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the random draws."
)
_silence_option = click.option(
    "--silence",
    type=Duration(),
    default="10m",
    show_default=True,
    help="Give up a server that sends nothing for this long.",
)
_log_option = click.option(
    "--log",
    type=path_type,
    metavar="FILE",
    help="Write the hands in ACPC format; FILE.phhs: in PHH; FILE.stars.txt: as PokerStars text.",
)
_hands_option = click.option("--hands", type=Count(), default=1_000, show_default=True, help="Number of hands to play.")
_resolve_option = click.option(
    "--resolve",
    metavar="STREET[:METHOD[:ITERATIONS]]",
    help="Re-solve each hand from this street on: flop, turn or river. Methods: docs/resolving.md.",
)
_REPORT_HANDS = 100


@click.group("bot")
def bot() -> None:
    """Play hands at a server with a policy, a run or a program."""


def _bot_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a bot command with the options that all bot commands share.

    The command's own options come first in its help.
    """
    shared = code_option, manner_options, _resolve_option, _seed_option, _log_option, _silence_option
    for option in reversed((*shared, json_option)):
        command = option(command)
    return command


def _play_at_server(policy: str, options: Mapping[str, Any], play: Callable[["ServerPlayer"], dict[str, Any]]) -> None:
    """Open a policy as a player, let it play at a server, and print the result.

    policy   path of a policy or run, or name of a program
    options  values of the options of `_bot_options` by name
    play     function that plays the hands of a player at the server, and returns the record of results
    """
    from mccfr.matches.bot_sessions import record_text, server_player
    from mccfr.matches.players import PlayManner

    player = server_player(policy, PlayManner.of_options(options), options["seed"], say=say)
    answer(play(player), options["as_json"], record_text)


@bot.command("acpc")
@click.argument("policy", metavar="POLICY")
@click.argument("host")
@click.argument("port", type=click.IntRange(1, 65535))
@click.option(
    "--patience", type=Duration(), default="60s", show_default=True, help="Keep trying to connect for this long."
)
@_bot_options
def acpc(policy: str, host: str, port: int, **options: Any) -> None:
    """Play a match at a server of the ACPC protocol 2.0.0, until the server closes the connection.

    The game is no-limit hold'em with the policy's stacks and blinds. The bot reconnects after a lost connection.

    Example: mccfr bot acpc hunl-quick-policy localhost 20000
    """
    from mccfr.matches.bot_sessions import run_acpc_bot

    how = {name: options[name] for name in ("log", "patience", "silence")}
    _play_at_server(policy, options, lambda player: run_acpc_bot(player, host, port, say=say, **how))


@bot.command("slumbot")
@click.argument("policy", metavar="POLICY")
@click.option("--url", required=True, metavar="URL", help="Address of the server: https://HOST/api.")
@_hands_option
@click.option("--user", metavar="NAME", help="Log in as this user; a prompt asks for the password.")
@_bot_options
def slumbot(policy: str, url: str, hands: int, user: str | None, **options: Any) -> None:
    """Play hands at a server with Slumbot's interface: stacks of 20,000 chips, blinds 50/100.

    Example: mccfr bot slumbot hunl-quick-policy --url https://slumbot.com/api --hands 1000
    """
    from mccfr.matches.bot_sessions import run_slumbot

    login = None if user is None else (user, click.prompt("password", hide_input=True, err=True))
    how = {"log": options["log"], "silence": options["silence"], "login": login, "progress": _progress(hands)}
    _play_at_server(policy, options, lambda player: run_slumbot(player, url, hands, **how))


@bot.command("gtowizard")
@click.argument("policy", metavar="POLICY")
@click.option("--url", required=True, metavar="URL", help="Address of the server: https://HOST.")
@click.option("--key-file", type=path_type, required=True, metavar="FILE", help="File with the server's key.")
@_hands_option
@_bot_options
def gtowizard(policy: str, url: str, key_file: Path, hands: int, **options: Any) -> None:
    """Play hands at the GTO Wizard researcher server, five at once.

    Stacks are 20,000 chips, blinds 50/100.

    Example: mccfr bot gtowizard hunl-quick-policy --url https://researcher.gtowizard.com --key-file key
    """
    from mccfr.matches.bot_sessions import run_gtowizard

    how = {"log": options["log"], "silence": options["silence"], "say": say, "progress": _progress(hands)}
    _play_at_server(policy, options, lambda player: run_gtowizard(player, url, key_file, hands, **how))


@bot.command("json")
@click.argument("policy", metavar="POLICY")
@code_option
@manner_options
@_resolve_option
@_seed_option
def json_bot(policy: str, **options: Any) -> None:
    """Answer decisions on stdin, a JSON object a line, with a line on stdout.

    Keys of an object: position (number of the player to act; of two players 0 is the big blind), hand (hole cards),
    line (the betting so far), board, stacks, and number (of the hand). The answer has the key action or error.
    docs/bots.md describes all keys.

    Example: echo '{"position": 1, "hand": "AhKh"}' | mccfr bot json hunl-quick-policy
    """
    from mccfr.matches.json_lines import answer_lines
    from mccfr.matches.players import PlayManner

    for found in answer_lines(policy, PlayManner.of_options(options), options["seed"], sys.stdin):
        click.echo(json.dumps(found))


def _progress(hands: int) -> Callable[[int], None]:
    """Return a function that receives the number of played hands and prints it at each hundred.

    hands  number of hands to play
    """

    def progress(done: int) -> None:
        if done % _REPORT_HANDS == 0:
            say(f"{done:,} of {hands:,} hands")

    return progress


@click.command("dealer")
@click.option("--players", type=click.IntRange(2, 6), help="Number of players; default: that of the policy, else 2.")
@click.option("--hands", type=Count(), default=1_000, show_default=True, help="Number of hands in the match.")
@click.option("--duplicate", is_flag=True, help="Play each deal with each player in each seat.")
@click.option("--stack", type=click.FloatRange(min=1), help="Each player's chips in every hand; default: 20000.")
@click.option("--blinds", type=float, nargs=2, metavar="SMALL BIG", help="Blinds in chips; default: 50 100.")
@click.option(
    "--with",
    "local_names",
    multiple=True,
    metavar="NAME",
    help="Policy, run or program that plays in this process; give it again for each such player.",
)
@click.option("--names", metavar="A,B,...", help="Names of the players in the log; those of --with come first.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    "ports",
    type=click.IntRange(0, 65535),
    multiple=True,
    help="Port to listen on; 0: any free port. Give it again for a port for each player. Default: 20000.",
)
@click.option("--wait", type=Duration(), default="10m", show_default=True, help="Longest wait for the players.")
@click.option("--response", type=Duration(), default="10m", show_default=True, help="Longest time for one decision.")
@click.option(
    "--per-hand", type=Duration(), default="7s", show_default=True, help="Longest mean time for a hand, over the match."
)
@code_option
@manner_options
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the deals and of --with."
)
@click.option(
    "--log", type=path_type, metavar="FILE", help="Write the match in ACPC format; a stopped match continues from it."
)
@click.option(
    "--phhs",
    type=path_type,
    metavar="FILE",
    help="Write the hands at the end in PHH; FILE.stars.txt: as PokerStars text.",
)
@json_option
def dealer(hands: int, duplicate: bool, as_json: bool, **options: Any) -> None:
    """Deal a match of no-limit hold'em between two to six players who connect by the ACPC protocol 2.0.0.

    The dealer listens on this machine only, unless --host names another address. It replaces an illegal action by the
    nearest legal one and prints a warning. A player may reconnect after a lost connection while the time to act runs.
    With --log the same command continues a match that was stopped.

    Example: mccfr dealer --hands 3000 --duplicate --port 20000 --log match.log
    """
    from mccfr.config.game_tables import HoldemGame
    from mccfr.matches.bot_sessions import record_text, run_dealer, server_player
    from mccfr.matches.dealer import Clock, MatchPlan
    from mccfr.matches.players import AS_WRITTEN, PlayManner, is_policy_name

    names = options["local_names"]
    if not any(Path(name).exists() for name in names):
        refuse_options_without_effect("without a policy or run in --with that does not re-solve", "purify", "threshold")
    keys = {"seats": "players", "stack": "stack", "blinds": "blinds"}
    stakes = {key: options[option] for key, option in keys.items() if options[option] is not None}
    manner = PlayManner(options["purify"], options["threshold"])
    opened, table = {}, HoldemGame(**stakes) if stakes else None
    programs_last = sorted(enumerate(names), key=lambda each: not is_policy_name(each[1]))  # they take any game
    for number, name in programs_last:
        own = manner if Path(name).exists() else AS_WRITTEN
        opened[number] = server_player(name, own, options["seed"] + number, table, say=say)
        table = opened[number].game
    players, table = [opened[number] for number in range(len(names))], table or HoldemGame()
    if len(names) > table.seats:
        raise click.BadParameter(f"--with may be given {table.seats} times at most: there are {table.seats} players")
    if len(names) == table.seats:
        refuse_options_without_effect(
            "where all players play in this process", "host", "ports", "wait", "response", "per_hand"
        )
    plan = MatchPlan(
        table.stack,
        (table.blinds[0], table.blinds[1]),
        hands,
        options["seed"],
        duplicate,
        _names(options["names"], names, table.seats),
    )
    _, record = run_dealer(
        plan,
        players,
        host=options["host"],
        ports=options["ports"] or (20_000,),
        clock=Clock(options["response"], options["per_hand"]),
        wait=options["wait"],
        log=options["log"],
        phhs=options["phhs"],
        say=say,
        warn=say,
    )
    answer(record, as_json, record_text)


@click.command("play")
@click.argument("policy", metavar="POLICY")
@click.option("--hands", type=Count(), default=1_000, show_default=True, help="Most hands; q stops earlier.")
@code_option
@manner_options
@_resolve_option
@click.option("--seed", type=click.IntRange(min=0), help="Seed of cards and draws; default: a new one each time.")
@hands_log_option
def play(policy: str, hands: int, seed: int | None, log: Path | None, **manner: Any) -> None:
    """Play hands against a policy or a run in the terminal; ? prints help, q stops.

    The policy has all other seats, and the button moves after each hand. At the end the program prints all hands with
    the cards of all players.

    Example: mccfr play hunl-quick-policy
    """
    from random import SystemRandom

    from mccfr.matches.bot_sessions import run_person
    from mccfr.matches.players import PlayManner

    run_person(
        policy,
        hands,
        PlayManner.of_options(manner),
        SystemRandom().randrange(1 << 31) if seed is None else seed,
        log=log,
        ask=_read_line,
        tell=click.echo,
    )


def _read_line(prompt: str) -> str:
    """Ask for a line at the terminal and return it; raise `EOFError` for Ctrl-C or the end of input."""
    try:
        return str(click.prompt(prompt.rstrip(), prompt_suffix=" ", default="", show_default=False))
    except click.Abort:
        click.echo()
        raise EOFError from None


def _names(names: str | None, local_players: Sequence[str], seats: int) -> tuple[str, ...]:
    """Return the names of a dealer's players for the log and results.

    names          value of --names, "A,B,..."; None: local players' own names, then player-1, player-2, ...
    local_players  values of --with: policies, runs or programs that play in this process
    seats          number of players

    Raises `click.BadParameter` if --names has another number of names.
    """
    from mccfr.matches.players import distinct_names, table_names

    if names is None:
        return table_names([*local_players, *(f"player-{number}" for number in range(1, seats + 1))][:seats])
    parts = [name.strip() for name in names.split(",")]
    if len(parts) != seats:
        raise click.BadParameter(f"--names {names}: write {seats} names with commas between them")
    return distinct_names(parts)
