"""Commands that evaluate, export and query strategies: evaluate, export, query."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from mccfr.cli.progress_display import evaluation_text, reporter
from mccfr.cli.shared_options import (
    Count,
    Duration,
    MethodName,
    abstraction_option,
    answer,
    code_option,
    json_option,
    manner_options,
    path_type,
    refuse_options_without_effect,
    replace_option,
)
from storage.free_space import bytes_text

if TYPE_CHECKING:
    from mccfr.evaluation.methods.option_structs import Declared
    from mccfr.games.game import Game
    from mccfr.policy.strategy_profile import Behaviour
    from mccfr.runs.results.targets import Reference


class EvaluateCommand(click.RichCommand):
    """Command class of `evaluate`, which adds the options that evaluation methods declare.

    These come before the command's last two, --json and --help. Methods are imported when the options are read, so that
    other commands start fast.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own options and those of the methods."""
        own = super().get_params(ctx)
        return [*own[:-2], *_method_options(), *own[-2:]]


def method_options_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a command's options that evaluation methods declare, as {name: value}."""
    from mccfr.evaluation.methods.registry import options_of_all

    return {name: options[name] for name in options_of_all()}


def _method_options() -> list[click.Parameter]:
    from mccfr.evaluation.methods.registry import options_of_all

    return [
        click.Option([name, each.flag], type=_type(each), metavar=each.option.metavar, help=each.option.help)
        for name, each in options_of_all().items()
    ]


def _type(declared: "Declared") -> click.ParamType[Any]:
    """Return the click type that parses an option declared by an evaluation method.

    Its type is int, str, Path or float; float options are durations in seconds, written as 90s or 10m.
    """
    option = declared.option
    if declared.type is int:
        return Count(option.least, option.most)
    return {Path: path_type, float: Duration(), str: click.STRING}[declared.type]


@click.command(cls=EvaluateCommand)
@click.argument("target", metavar="DIR-or-POLICY", type=path_type)
@click.option(
    "--method",
    default="auto",
    show_default=True,
    type=MethodName(),
    help="exact: exploitability; sampled-br: best response on sampled boards; lbr: local best response; bounds: these "
    "two; head-to-head: against another strategy; trained-response: gains with three and more players; auto: "
    "head-to-head with --against, else exact, or for whole hold'em lbr (sampled-br with --boards); or module:Class.",
)
@click.option("--checkpoint", type=click.IntRange(min=0), help="Number of the checkpoint; default: the newest.")
@click.option(
    "--against",
    default="uniform",
    show_default=True,
    metavar="POLICY",
    help="head-to-head: a policy, a run, uniform or always-call; its abstraction and bet sizes may differ.",
)
@click.option("--against-checkpoint", type=click.IntRange(min=0), help="Checkpoint of the run in --against.")
@click.option("--average", help="Average of a deep-cfr run: sd or network; default: the first of solver.averages.")
@click.option("--against-average", help="--average of the run in --against.")
@code_option
@abstraction_option
@click.option("--against-abstraction", type=path_type, help="--abstraction of the run in --against.")
@click.option("--strategy", metavar="NAME", help="Evaluate uniform, always-call or always-fold in this game instead.")
@json_option
def evaluate(target: Path, method: str, checkpoint: int | None, as_json: bool, **options: Any) -> None:
    """Print the value and exploitability of a run's checkpoint or a policy.

    Exploitability is a best response's gain, averaged over both players, in chips and in mbb per game. For whole
    hold'em the exact figure takes hours; --flops gives an estimate, and lbr a lower bound. Head-to-head plays two
    strategies on sampled boards, exact in the hole cards. It prints the winnings of DIR-or-POLICY per hand with a 95 %
    interval. Each strategy uses its own buckets and bet sizes, and translates the other's bets. The rules of the two
    games must be the same.

    Example: mccfr evaluate runs/hunl-quick --method head-to-head --against always-call
    """
    from mccfr.api.evaluating import evaluate_target
    from mccfr.runs.results.targets import Reference

    with reporter() as report:
        record = evaluate_target(
            target,
            method,
            checkpoint,
            abstraction=options["abstraction"],
            average=options["average"],
            against=Reference(
                Path(options["against"]),
                options["against_checkpoint"],
                options["against_abstraction"],
                options["against_average"],
            ),
            strategy=options["strategy"],
            reporter=report,
            **method_options_of(options),
        )
    answer(record, as_json, lambda record: evaluation_text(record) + _best_response_text(record))


def _best_response_text(record: dict[str, Any]) -> str:
    """Return a line on the chips per hand that a response to the strategy wins as each player.

    It is a best response, or one whose winnings are a lower bound. "" for evaluation methods without responses.
    """
    best = record["best_response_chips"]
    if best is None:
        return ""
    who = "a best response" if record["bound"] == "exact" else "the responder"
    blind, roles = record["big_blind_chips"], record["roles"]
    bb = ["" if blind is None else f" = {chips / blind:.4g} big blinds" for chips in best]
    parts = [f"{chips:.6g} chips{bb[k]} as player {k} ({roles[k]})" for k, chips in enumerate(best)]
    return f"\n{who} gets {' and '.join(parts)}"


@click.command()
@click.argument("directory", metavar="DIR", type=path_type)
@click.argument("out", type=path_type)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["policy", "networks", "zarr", "hdf5", "csv", "parquet", "openspiel"]),
    help="policy (default): plain files that any language can map; networks: default for deep-cfr; openspiel: a table "
    "for OpenSpiel.",
)
@click.option("--tabulate", is_flag=True, help="Evaluate networks at every infoset, and write a policy.")
@click.option("--checkpoint", type=click.IntRange(min=0), help="Number of the checkpoint; default: the newest.")
@click.option(
    "--quantise",
    type=click.Choice(["uint8", "uint16"]),
    help="Round probabilities to 8 or 16 bits; default: uint16.",
)
@code_option
@manner_options
@click.option("--values", is_flag=True, help="Also write each bucket's EV at the start of streets, for re-solving.")
@click.option(
    "--values-boards",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Sampled boards for --values in whole hold'em; other games need none.",
)
@click.option("--average", help="Average of a deep-cfr run: sd or network; default: the first of solver.averages.")
@click.option(
    "--by", type=click.Choice(["bucket", "hand"]), default="bucket", help="csv, parquet: a row for each of these."
)
@click.option("--board", help="--by hand: board of the rows; earlier streets have its first cards.")
@click.option(
    "--license", metavar="TEXT", help="License of the data, which the export states: CC-BY-4.0; default: none."
)
@click.option(
    "--vectors",
    metavar="N",
    type=click.IntRange(min=1),
    help="Write N random decisions of the policy DIR as JSON lines, by which a reader checks itself.",
)
@abstraction_option
@replace_option
def export(
    directory: Path,
    out: Path,
    format_name: str | None,
    checkpoint: int | None,
    by: str,
    board: str | None,
    vectors: int | None,
    **how: Any,
) -> None:
    """Write the average strategy of the run in DIR to OUT.

    An earlier export of the same run is replaced. DIR may also be a policy, that is an export of a run, to be written
    in another format (csv, parquet or openspiel).

    To see what --quantise, --purify or --threshold costs, run: mccfr evaluate OUT --method head-to-head --against DIR

    Example: mccfr export runs/leduc leduc-policy
    """
    from mccfr.policy import is_policy
    from mccfr.runs.directory.run import open_run
    from mccfr.runs.results.run_export import ExportOptions, export_run

    if vectors is not None:
        _export_vectors(directory, out, vectors)
        return
    tabulate, quantise = how["tabulate"], how["quantise"]
    if tabulate and format_name == "networks":
        raise click.BadParameter("--tabulate writes a policy: leave --format networks out")
    board = _board_of_rows(by, board, format_name)
    if is_policy(directory):
        _export_policy(directory, out, format_name or "policy", board, replace=how["replace"])
        return
    run = open_run(directory, how["abstraction"])
    changed, keeps_networks = quantise or how["purify"] or how["threshold"], run.algorithm.averages.keeps_networks
    networks = keeps_networks and not (changed or tabulate)
    format_name = format_name or ("networks" if networks else "policy")
    game = run.build_game()
    _refuse_without_effect(game, values=how["values"])
    if not keeps_networks:
        refuse_options_without_effect(f"on {directory}, which keeps no networks", "tabulate")
    if quantise and format_name != "policy":
        raise click.BadParameter(f"--quantise rounds a policy, and {format_name} is not rounded: leave it out")
    taken = {key: how[key] for key in ("average", "purify", "threshold", "replace", "license")}
    value_boards = how["values_boards"] if how["values"] else 0
    with reporter() as report:
        options = ExportOptions(
            format_name, quantise or "uint16", checkpoint, value_boards=value_boards, board=board, **taken
        )
        written = export_run(run, game, out, options, report)
    _tell_written(written, format_name)
    _tell_origin(written, format_name)


def _refuse_without_effect(game: "Game", *, values: bool) -> None:
    """Raise `ValueError` if --values-boards is given and has no effect.

    It has none without --values, and in a game that lists its boards, because they are all evaluated.

    values  True if --values is given
    """
    if not values:
        refuse_options_without_effect("without --values", "values_boards")
    if game.cards.boards is not None:
        refuse_options_without_effect(f"on {game.name}, whose boards are all evaluated", "values_boards")


def _board_of_rows(by: str, board: str | None, format_name: str | None) -> str | None:
    """Return the board for an export that has a row for each hand, or None.

    The text is "" if the game or street has no board. None: the export has a row for each bucket.

    by           value of --by: "hand" for a row for each hand, "bucket" for a row for each bucket
    board        value of --board
    format_name  value of --format

    Raises `click.BadParameter` for values that do not fit together.
    """
    from mccfr.policy.export import BY_HAND

    if by == "bucket":
        if board is not None:
            raise click.BadParameter("--board is of rows of hands: add --by hand")
        return None
    if format_name not in BY_HAND:
        raise click.BadParameter("--by hand has a row for each hand: choose csv or parquet by --format")
    return board or ""


def _tell_written(path: Path, format_name: str) -> None:
    from storage.free_space import tree_bytes

    size = bytes_text(tree_bytes(path))
    click.echo(f"wrote {path}, {size}{_NEXT.get(format_name, '').format(path)}", err=True)


def _tell_origin(path: Path, format_name: str) -> None:
    """Print the origin that an exported file states, such as the run, if its format has one."""
    from mccfr.policy.origin import origin_facts
    from mccfr.runs.results.run_export import ORIGIN

    if origin := ORIGIN[format_name](path):
        click.echo(f"it states: {'; '.join(origin_facts(origin))}", err=True)


def _export_policy(directory: Path, out: Path, format_name: str, board: str | None, *, replace: bool) -> None:
    """Write the policy in `directory` to `out` in another format.

    Raises `ValueError` if an option is given that applies only to runs.

    format_name  format of the new file: a value of --format
    board        write rows of hands on this board ("" for none); None: rows of buckets
    replace      True: replace also an export of another run
    """
    from mccfr.policy import Policy

    names = click.get_current_context().params.keys() - {"directory", "out", "format_name", "by", "board", "replace"}
    refuse_options_without_effect(f"on {directory}, which is a policy", *names)
    _tell_written(Policy.open(directory).export(out, format=format_name, board=board, replace=replace), format_name)


def _export_vectors(directory: Path, out: Path, count: int) -> None:
    """Write `count` random decisions of a policy, with their probabilities, as JSON lines to `out`.

    Other programs that read the policy can test themselves by them. Raises `ValueError` if options are given that
    --vectors does not use.

    directory  directory of the policy
    """
    from mccfr.policy import Policy
    from mccfr.policy.export.vectors import write_vectors

    others = click.get_current_context().params.keys() - {"directory", "out", "vectors"}
    refuse_options_without_effect("with --vectors", *others)
    _tell_written(write_vectors(out, Policy.open(directory), count), "vectors")


_NEXT = {
    "networks": '; next: mccfr query {} ""',
    "policy": '; next: mccfr query {} ""',
    "zarr": '; next: zarr.open("{}") in Python, with the tree under tree/',
    "hdf5": '; next: h5py.File("{}") in Python, with the tree under tree/',
    "openspiel": "; next: pyspiel.TabularPolicy, as docs/policies.md has it",
}
"""Advice on using an export, by format."""


@click.command()
@click.argument("policy", metavar="POLICY-or-DIR", type=path_type)
@click.argument("line")
@click.option("--hand", help="Hole cards of the player to act: AsKh, K; default: all hands.")
@click.option("--board", help="Board: Qs7h2d, or 'Qs 7h 2d'.")
@click.option(
    "--range",
    "notation",
    type=click.Choice(["mccfr", "pio", "gto+", "gtowizard", "equilab"]),
    help="Print both players' ranges instead, in this program's notation or another's.",
)
@click.option(
    "--ev", is_flag=True, help="Also print the EV of each action, with a 95 % interval where boards are drawn."
)
@click.option("--checkpoint", type=click.IntRange(min=0), help="Number of the checkpoint; default: the newest.")
@click.option(
    "--sample", type=click.IntRange(min=0), metavar="SEED", help="Draw one of the run's networks by this seed."
)
@code_option
@abstraction_option
@json_option
def query(policy: Path, line: str, hand: str | None, board: str | None, as_json: bool, **how: Any) -> None:
    """Print the strategy of a policy, or of the run in DIR, after a betting line.

    LINE has c (check or call), f (fold), bN (bet or raise to N chips on this street) and / between streets. No-limit
    hold'em also knows 3bb, 50% and allin. "" is the first decision.

    Example: mccfr query kuhn-policy cb --hand Q
    """
    from mccfr.policy.network_query import query_networks
    from mccfr.policy.origin import unfinished_text
    from mccfr.policy.query import query as look_up
    from mccfr.runs.results.targets import Reference, open_networks, open_source

    reference, sample = Reference(policy, how["checkpoint"], how["abstraction"]), how["sample"]
    networks = open_networks(reference)
    if how["notation"] is not None:
        refuse_options_without_effect("with --range", "hand", "sample", "ev")
        record = _ranges(reference, line, board or "", how["notation"])
        answer(record, as_json, lambda record: "\n".join(f"{one['role']}: {one['text']}" for one in record["ranges"]))
        return
    if networks is not None:
        refuse_options_without_effect("on networks", "ev")
        record = query_networks(networks, line, hand, board, sample)
    elif sample is not None:
        raise click.BadParameter(f"{policy} has no networks, so none can be drawn: leave --sample out")
    else:
        source = open_source(reference)
        record = look_up(source, line, hand, board)
        if unfinished := unfinished_text(getattr(source, "meta", {}).get("provenance", {})):
            click.echo(f"{policy} is {unfinished}", err=True)
        if how["ev"]:
            _add_values(record, source, line, hand, board)
    answer(record, as_json, _query_text)


def _add_values(found: dict[str, Any], source: "Behaviour", line: str, hand: str | None, board: str | None) -> None:
    """Add the EV in chips of each action after a betting line to `found`, the answer of a query.

    Each item of found["actions"] gets further keys, and `found` itself too.
    """
    from mccfr.view.expected_values import query_values

    values = query_values(source, line, hand, board)
    for action, more in zip(found["actions"], values.pop("actions"), strict=True):
        action.update(more)
    found.update(values)


def _ranges(target: "Reference", line: str, board: str, notation: str) -> dict[str, Any]:
    """Return {"ranges": a list with all players' ranges after a betting line}.

    Each item is a dictionary: `role` ("button"), `combos` (sum of the hands' weights) and `text` (the range).

    notation  notation of the texts, such as "pio": a value of --range
    """
    from mccfr.runs.results.targets import open_source
    from mccfr.view.spot_view import Spots

    return {"ranges": Spots(open_source(target), "").ranges(line, board, notation)}


def _query_text(answer_fields: dict[str, Any]) -> str:
    """Return the answer of `mccfr query` as text, with one line for each action or each hand.

    answer_fields  {name: value}, as --json prints them
    """
    pot = "" if answer_fields["pot_chips"] is None else f", pot {answer_fields['pot_chips']} chips"
    if answer_fields["pot_chips"] is not None and answer_fields["big_blind_chips"] is not None:
        pot += f" = {answer_fields['pot_chips'] / answer_fields['big_blind_chips']:g} big blinds"
    who = f"player {answer_fields['player']} ({answer_fields['role']})"
    lines = [f"{who} to act on street {answer_fields['street']} after {answer_fields['line']!r}{pot}"]
    for reading in answer_fields.get("readings", ()):
        call = "" if reading["after_call"] is None else f", and for {reading['after_call']!r} once it is called,"
        lines.append(
            f"not in the tree: taken for {reading['line']!r}{call} with probability {reading['probability']:.3f}"
        )
    if "infoset" in answer_fields:
        lines.append(f"who knows {answer_fields['infoset']!r}")
    names = [action["action"] for action in answer_fields["actions"]]
    if "hands" in answer_fields:
        lines.append("hand    " + "".join(f"{name:>10}" for name in names))
        for hand, row in answer_fields["hands"].items():
            flag = "  (never reached: uniform)" if hand in answer_fields["unreached"] else ""
            flag += _locked_text(answer_fields.get("locked", {}).get(hand, ()))
            lines.append(f"{hand:8}" + "".join(f"{share:10.4f}" for share in row) + flag)
        return "\n".join([*lines, *_range_values(answer_fields)])
    for action in answer_fields["actions"]:
        ev = _ev_text(answer_fields, action["ev_chips"], action["ev_chips_within"]) if "ev_chips" in action else ""
        lines.append(f"{action['action']:>10}  {action['probability']:.4f}{ev}  {action.get('name', '')}".rstrip())
    lines.append(
        f"weight {answer_fields['actions'][0]['weight']:g}"
        + ("" if answer_fields["reached"] else ": never reached, uniform")
    )
    lines[-1] += _locked_text(answer_fields.get("locked", ()))
    if "sampled_iteration" in answer_fields:
        lines.append(f"played by the network of iteration {answer_fields['sampled_iteration']}")
    elif "networks" in answer_fields:
        lines.append(f"average of {answer_fields['networks']} networks")
    return "\n".join(lines)


def _range_values(found: Mapping[str, Any]) -> list[str]:
    """Return lines of text with the EV of each action, for each hand and for the range.

    Returns [] if the answer `found` of a query has no EVs of hands: without --ev, or for one hand only.
    """
    if "hand_evs" not in found:
        return []
    names = [action["action"] for action in found["actions"]]
    lines = ["", "EV of each action", "hand    " + "".join(f"{name:>20}" for name in names)]
    for hand, row in found["hand_evs"].items():
        cells = zip(row, found["hand_evs_within"][hand], strict=True)
        lines.append(f"{hand:8}" + "".join(f"{_ev_text(found, *cell).strip():>20}" for cell in cells))
    lines.append("")
    for action in found["actions"]:
        ev = _ev_text(found, action["ev_chips"], action["ev_chips_within"])
        share = "-" if action["frequency"] is None else f"{action['frequency']:.4f}"
        lines.append(f"{action['action']:>10}  {share}{ev} of the hands that take it")
    return lines


def _ev_text(found: Mapping[str, Any], ev: float | None, within: float | None) -> str:
    """Return an EV and its margin as text, in big blinds, or in chips if the game has no big blind.

    ev      EV in chips; None: unknown
    within  half of its 95 % interval in chips; 0 for an exact EV
    """
    if ev is None or within is None:
        return "  EV -"
    unit, name = (found["big_blind_chips"], "BB") if found["big_blind_chips"] else (1, "chips")
    return f"  EV {ev / unit:.3f}" + (f" ± {within / unit:.3f}" if within else "") + f" {name}"


def _locked_text(actions: Sequence[str]) -> str:
    return f"  (locked: {', '.join(actions)})" if actions else ""
