"""Commands before a run: init, games, plan."""

import json
from pathlib import Path
from typing import Any

import rich_click as click

from mccfr.cli.run_commands import run_directory_of
from mccfr.cli.shared_options import (
    Duration,
    MemorySizes,
    answer,
    json_option,
    path_type,
    print_json,
    refuse_options_without_effect,
    speed_option,
    workers_text,
)
from mccfr.runs.reporter import Silent, duration_text
from storage.free_space import bytes_text


@click.command()
@click.argument("name", required=False)
@json_option
def games(name: str | None, as_json: bool) -> None:
    """List all games, or the game NAME, with parameters, defaults and the size of an example."""
    from mccfr.games.registry import catalogue

    entries = catalogue(name)
    if as_json:
        print_json(entries)
        return
    for game in entries:
        click.secho(game["name"], bold=True, nl=False)
        click.echo(f"  {game['description']}")
        for key, default in game["parameters"].items():
            click.echo(f"    {key} = {'(required)' if key in game['required'] else _toml(default)}")
        if game["counts"]:
            counts = game["counts"]
            example = ", ".join(f"{key} = {_toml(value)}" for key, value in game["example"].items()) or "as is"
            click.echo(
                f"    example ({example}): {counts['nodes']:,} nodes, {counts['decision_nodes']:,} decisions, "
                f"{counts['infosets']:,} infosets"
            )


def _toml(value: Any) -> str:
    """Return a game parameter's value in TOML form; "(none)" for None."""
    if value is None:
        return "(none)"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items() if item is not None) + "}"
    return json.dumps(value)


@click.command()
@click.argument("directory", metavar="[DIR]", type=path_type, default="runs")
def init(directory: Path) -> None:
    """Copy the example runs, experiments and abstraction recipes to DIR (default: runs).

    A recipe describes how to compute the buckets of hands. Existing files stay unchanged. If one of them differs from
    its example, nothing is copied.
    """
    from mccfr.config.examples import copy_examples, example_files

    copied = copy_examples(directory, example_files())
    click.echo(f"mccfr: {directory}: {len(copied)} files; next: mccfr solve {directory / 'leduc.toml'}", err=True)


@click.command()
@click.argument("config", type=path_type)
@click.option("--set", "overrides", multiple=True, metavar="TABLE.KEY=VALUE", help="Override one key of the config.")
@click.option("--budget", type=Duration(), help="Time in which the run must end: 24h, 7d.")
@click.option("--machines", type=click.IntRange(1, 1024), default=1, help="Machines of --workers each, as this one.")
@click.option("--memory", type=MemorySizes(), default=(), help="Memory of these machines: 256GB, or 256GB,128GB.")
@click.option("--workers", type=click.IntRange(0, 1024), help="Worker processes on each machine.")
@speed_option
@json_option
def plan(
    config: Path,
    overrides: tuple[str, ...],
    budget: float | None,
    machines: int,
    memory: tuple[float, ...],
    workers: int | None,
    speed: int | None,
    as_json: bool,
) -> None:
    """Print whether the run of CONFIG can work, its size, memory, disk and time; create nothing.

    CONFIG is a TOML file, or the name of an example (kuhn, leduc, subgame, hunl-quick ...). The first line is "fits",
    "fits, but ..." or "cannot work: ..."; the last has exit status 1. What solve refuses, plan refuses too. A second of
    training measures the speed; it is thrown away.

    Example: mccfr plan hunl-standard --set run.nodes=1e11 --budget 24h --workers 32
    """
    from msgspec import structs

    from mccfr.config.examples import find_file
    from mccfr.config.toml_files import load_config, parse_override
    from mccfr.runs.session.plan_verdict import CANNOT_WORK
    from mccfr.runs.session.run_plan import make_plan
    from mccfr.runs.session.start import Start, Terms, check_start
    from mccfr.runs.session.train_and_export import limited

    config, room = find_file(config), None
    settings = load_config(config, overrides)
    overridden = [parse_override(text)[0] for text in overrides]
    settings = structs.replace(settings, run=limited(settings.run, {"workers": workers}, overridden))
    start = Start(settings, config.parent, run_directory_of(config, None), Terms(Silent()))
    check_start(start)
    if machines > 1:
        from mccfr.cluster.cluster_plan import ClusterSpace

        room = ClusterSpace(settings, machines, memory)
    else:
        refuse_options_without_effect("with one machine", "memory")
    estimate = make_plan(
        settings, start.base, start.directory, speed=speed, machines=machines, budget=budget, room=room
    )
    answer(estimate | ({} if room is None else room.figures), as_json, _plan_text)
    if estimate["verdict"] == CANNOT_WORK:
        raise click.exceptions.Exit(1)


def _plan_text(plan: dict[str, Any]) -> str:
    first, *others = plan["reasons"] or [""]
    lines = [
        f"{plan['verdict']}{':' * plan['verdict'].startswith('cannot')} {first}".rstrip(),
        *(f"             {reason}" for reason in others),
        f"game         {plan['game']}",
        f"tree         {plan['nodes']:,} nodes, {plan['decision_nodes']:,} decisions "
        f"(by street {plan['decision_nodes_per_street']}, actions {plan['actions_per_street']})",
        *_players_lines(plan),
        f"infosets     {plan['infosets']:,} (by player {plan['infosets_per_player']})",
        f"tables       {bytes_text(plan['table_bytes'])} (by street "
        f"{', '.join(bytes_text(b) for b in plan['bytes_per_street'])})",
        *_strata_lines(plan),
        f"memory       {bytes_text(plan['memory_bytes'])}, {bytes_text(plan['least_memory_bytes'])} at least ("
        f"{bytes_text(plan['memory_available_bytes'])} available): tables, bucket tables "
        f"{bytes_text(plan['bucket_table_bytes'])}, copy for checkpoints {bytes_text(plan['copy_bytes'])}, strategies "
        f"of evaluations {bytes_text(plan['evaluation_bytes'])}, processes",
        *_page_lines(plan["huge_pages"]),
        f"disk         {bytes_text(plan['disk_bytes'])} at most{_left_text(plan)}",
        f"checkpoint   {bytes_text(plan['checkpoint_bytes'])} before compression, about "
        f"{duration_text(plan['checkpoint_seconds'])} beside the workers, who rest for "
        f"{duration_text(plan['checkpoint_pause_seconds'])}{_traffic_text(plan)}",
    ]
    if "seconds_per_iteration" in plan:
        lines.append(
            f"learning     memories {bytes_text(plan['memories_bytes'])}, networks "
            f"{bytes_text(plan['networks_bytes'])} ({plan['parameters']:,} parameters each); an iteration about "
            f"{duration_text(plan['seconds_per_iteration'])} of one processor"
        )
    if plan["nodes_per_iteration"] is not None:
        lines.append(
            f"iteration    about {plan['nodes_per_iteration']:,.0f} nodes; {plan['iterations_per_second']:,.0f} "
            "iterations a second"
        )
    if plan["visits_per_infoset_per_street"] is not None:
        visits = ", ".join(f"{count:,.3g}" for count in plan["visits_per_infoset_per_street"])
        lines.append(
            f"visits       {visits} to an infoset on average, by street; median at most about "
            f"{plan['visits_median']:,.3g}, tenth percentile {plan['visits_tenth_percentile']:,.3g}"
        )
    return "\n".join([*lines, *_time_lines(plan), *map(_similar_text, plan["similar_runs"])])


def _similar_text(run: dict[str, Any]) -> str:
    """Return a line of text on a measured run that resembles the planned one.

    It has the run's buckets, length and loss. The length is in nodes touched, or in boards for CFR-BR. The loss is the
    winnings of a best response to the run's strategy, in mbb per game: exact, or a lower bound.

    run  one of the plan's `similar_runs`
    """
    _, *later = run["buckets"]
    buckets = " / ".join(f"{count:,}" for count in (later if len(set(later)) > 1 else later[:1]))
    length = f"{run['boards']:,} boards" if run["nodes"] is None else f"{run['nodes']:.1e} nodes"
    each = run["nodes_per_infoset"]
    among = "" if each is None else f", {each:,.3g} to an infoset"
    interval = "" if run["low"] is None else f" ({run['low']:,.0f} to {run['high']:,.0f})"
    loss = f"loses {run['mbb']:,.0f} mbb/g{interval}, {run['measure']}"
    return f"similar      {run['recipe']} on {buckets} buckets after {length}{among}: {loss}"


def _players_lines(plan: dict[str, Any]) -> list[str]:
    """Return a line of text on how many decision nodes the tree has, by players left and street.

    Players are left if they have not folded. Returns [] for games of two players.

    plan  {name: value}, as `mccfr plan --json` prints it
    """
    table = plan.get("decision_nodes_by_players_left", [])
    counts = (f"{players}: {list(column)}" for players, column in enumerate(zip(*table, strict=True), 2))
    return [f"             by players left, each by street: {', '.join(counts)}"] if table else []


def _left_text(plan: dict[str, Any]) -> str:
    """Return a text on the disk space of the checkpoints that the run keeps at its end.

    It is "" if the training time is unknown, such as for a run without a limit of nodes, iterations or time.

    plan  {name: value}, as `mccfr plan --json` prints it
    """
    return "" if plan["left_bytes"] is None else f"; its checkpoints keep about {bytes_text(plan['left_bytes'])}"


def _traffic_text(plan: dict[str, Any]) -> str:
    """Return a text on the number of checkpoints of the whole run and the bytes that they write.

    It is "" if the training time is unknown, such as for a run without a limit of nodes, iterations or time.

    plan  {name: value}, as `mccfr plan --json` prints it
    """
    if plan["checkpoints"] is None:
        return ""
    return f"; {plan['checkpoints']:,} in all write up to {bytes_text(plan['checkpoint_traffic_bytes'])}"


def _time_lines(plan: dict[str, Any]) -> list[str]:
    """Return lines of text on the time that a run takes, and the workers that --budget needs.

    Returns [] if the training time is unknown, such as for a run without a limit of nodes, iterations or time.

    plan  {name: value}, as `mccfr plan --json` prints it
    """
    if plan["seconds"] is None:
        return []
    known = "measured" if plan["measured"] else "if the machine does that"
    speed = f"at {plan['nodes_per_second_assumed'] / 1e6:,.3g} M nodes/s ({known})"
    built = plan["abstraction_seconds"]
    lines = [
        f"time         about {duration_text(plan['total_seconds'])} without evaluations and export: "
        + (f"{duration_text(built)} to build the abstraction, " if built else "")
        + f"{duration_text(plan['seconds'])} of training, {workers_text(plan['workers'])}, {speed}"
    ]
    if "budget_seconds" in plan:
        machines, least = plan["budget_machines"], plan["budget_workers"]
        enough = "no number of workers is enough" if least is None else f"at least {workers_text(least)}"
        each = plan["workers"] // plan["machines"]
        on = "" if machines is None or machines == 1 else f", or {machines} machines of {each}"
        nodes = f"{plan['budget_nodes']:.2g} nodes with the present workers"
        lines.append(f"budget       {duration_text(plan['budget_seconds'])}: {enough}{on}; {nodes}")
    return lines


def _page_lines(pages: dict[str, Any]) -> list[str]:
    """Return a line of text on huge pages of memory for the tables, which may speed up training.

    It says that the tables get them, or how to enable them. Returns [] if neither applies.

    pages  field `huge_pages` of the plan
    """
    if pages["given"]:
        return ["huge pages   asked for, and given where memory is not in too small pieces"]
    return [f"huge pages   none: {pages['advice']}"] if pages["advice"] else []


def _strata_lines(plan: dict[str, Any]) -> list[str]:
    if "strata" not in plan:
        return []
    idle = f"; {plan['idle_workers']} workers would have none" if plan["idle_workers"] else ""
    return [
        f"strata       {plan['strata']}: {bytes_text(plan['shared_bytes'])} shared, "
        f"{bytes_text(plan['largest_stratum_bytes'])} of the largest{idle}",
        *_machine_lines(plan),
        *_turn_lines(plan),
    ]


def _machine_lines(plan: dict[str, Any]) -> list[str]:
    if "machine_bytes" not in plan:
        return []
    return [
        f"machines     {plan['machines']}: {bytes_text(plan['machine_bytes'])} on the largest, "
        f"{bytes_text(plan['coordinator_bytes'])} where the coordinator is; the busiest has {plan['unevenness']:.2f} "
        "times its share",
        f"barrier      {bytes_text(plan['barrier_bytes'])}, {plan['barrier_seconds']:.2g} s at 1 Gbit/s",
    ]


def _turn_lines(plan: dict[str, Any]) -> list[str]:
    if "blocks" not in plan:
        return []
    moving, trained = plan["cycle_moving_seconds"], f", training takes {duration_text(plan['cycle_training_seconds'])}"
    disk = "all blocks in memory, none moves"
    if moving:
        disk = (
            f"moving blocks takes {duration_text(moving)} (disk: {plan['disk_write_bytes_per_second'] / 1e6:,.0f} MB a "
            f"second written, {plan['disk_read_bytes_per_second'] / 1e6:,.0f} read)"
        )
    lines = [
        f"in turn      {plan['blocks']} blocks, {bytes_text(plan['largest_block_bytes'])} the largest; "
        f"{bytes_text(plan['resident_bytes'])} in memory",
        f"cycle        {plan['cycle_iterations']:,} iterations: {disk}{trained}",
    ]
    if plan["proposed_cycle_iterations"] is not None:
        lines.append(f"proposed     {plan['proposed_cycle_iterations']:,} iterations, in which the disk keeps up")
    if plan["cycles"] is not None:
        lines.append(f"cycles       {plan['cycles']:,.1f}, which write {bytes_text(plan['written_bytes'])}")
    return lines
