"""Strata in turn from a disk, in a fraction of their memory: against memory enough, and against plain mapping.

Each side is a run of the same schedule by the installed command, in a process of its own.  The side on the disk, and
plain mapping (all blocks in live tables that lie on the disk, moved by the system page by page), may use no more memory
than `plan` says: a control group holds them to it where this user may make one.  The ordinary sampler is mapped too,
which goes through all blocks at once.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import rich_click as click

from mccfr.config.file import config_from
from mccfr.config.sizes import bytes_of
from mccfr.config.tables import CYCLE_ITERATIONS
from mccfr.runs.directory.run import JOURNAL, METRICS, open_run
from mccfr.runs.directory.trends import TRENDS
from mccfr.runs.results.results import find_checkpoint
from mccfr.runs.session.plan import make_plan
from storage.disk_speed import disk_speed

_MEASURED_SECONDS = 2.0
_GROUPS = Path("/sys/fs/cgroup/memory")


def _document(
    game: dict[str, Any], strata: int, cycle: int, cycles: int, workers: int, resident: str
) -> dict[str, Any]:
    return {
        "game": game,
        "tables": {"resident": resident},
        "run": {
            "strata": strata,
            "blocks": strata // 2,
            "cycle_iterations": cycle,
            "iterations": cycle * cycles,
            "workers": workers,
            "checkpoint_seconds": 1e6,
            "keep_checkpoints": 1,
        },
        "evaluation": {"every_checkpoint": False, "at_end": False},
    }


def _mapped(document: dict[str, Any], base: Path, name: str) -> dict[str, Any]:
    """The configuration with live tables in a directory; `ordinary`: and without strata."""
    (base / "live").mkdir(exist_ok=True)
    document["tables"]["live_dir"] = str(base / "live")
    if name == "ordinary":
        del document["tables"]["resident"]
        for key in ("strata", "blocks", "cycle_iterations"):
            del document["run"][key]
    return document


def _group(limit: int | None) -> Path | None:
    """A control group of a memory limit, where one can be made."""
    if limit is None or not os.access(_GROUPS, os.W_OK):
        return None
    group = _GROUPS / f"mccfr-bench-{os.getpid()}"
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text(str(limit))
    return group


def _ended(group: Path | None) -> int | None:
    """The most memory that a group has had; it is removed."""
    if group is None:
        return None
    peak = int((group / "memory.max_usage_in_bytes").read_text())
    for _ in range(50):
        try:
            group.rmdir()
            break
        except OSError:  # members are still ending
            time.sleep(0.2)
    return peak


def _trained(directory: Path, document: dict[str, Any], limit: int | None, seconds: float) -> dict[str, Any]:
    """Run a configuration, for so long at most; its training seconds without the last checkpoint, and its digest."""
    import tomli_w

    path = directory.with_suffix(".toml")
    path.write_text(tomli_w.dumps(document))
    group = _group(limit)
    joined = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"] if group else []
    command = [sys.executable, "-m", "mccfr", "solve", str(path), "--run", str(directory), "--force"]
    process = subprocess.Popen([*joined, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        run = directory / METRICS
        lines = run.read_text().splitlines() if run.exists() else []
        last = json.loads(lines[-1]) if lines else {"nodes_touched": 0, "training_seconds": 0.0}
        return {"seconds": None, "nodes": last["nodes_touched"], "training_seconds": last["training_seconds"]}
    finally:
        peak = _ended(group)
    if process.returncode:
        raise click.ClickException(said.strip().splitlines()[-1])
    run = open_run(directory)
    began = next(line for line in run.read(JOURNAL) if line.get("event") == "started")["unix_seconds"]
    ended = next(line for line in run.backwards(JOURNAL) if "manifest" in line)["unix_seconds"]
    trend = next(run.backwards(TRENDS))
    metrics = next(run.backwards(METRICS))
    found, checkpoint = sha256(), find_checkpoint(run, None)
    for spec in sorted(checkpoint.specs, key=lambda spec: spec.name):
        found.update(spec.name.encode() + checkpoint.read(spec.name).tobytes())
    return {
        "seconds": round(ended - began - trend["commit_seconds"], 1),
        "training_seconds": round(metrics["training_seconds"], 1),
        **trend.get("disk", {}),
        "digest": found.hexdigest()[:16],
        "nodes": checkpoint.state["nodes_touched"],
        "peak_bytes": peak,
    }


@click.command()
@click.option("--raises", default=7, help="Of flop-holdem; its tables take 0.33 GB with one and 5.3 with six.")
@click.option("--strata", default=32)
@click.option("--cycle", type=int, help="Iterations of a cycle; left out: as many as plan proposes, measured.")
@click.option("--cycles", default=20)
@click.option("--workers", default=2)
@click.option("--share", default=0.25, help="Of the tables that may be in memory.")
@click.option("--folder", type=click.Path(path_type=Path), default=Path(), help="Where runs are made: on the disk.")
@click.option("--mapped-seconds", default=300.0, help="That plain mapping, beside it, has at most; 0: leave it out.")
@click.option("--patience", default=36_000.0, help="Seconds that a side may take.")
def turns(
    raises: int,
    strata: int,
    cycle: int | None,
    cycles: int,
    workers: int,
    share: float,
    folder: Path,
    mapped_seconds: float,
    patience: float,
) -> None:
    """Strata in turn from the disk in a share of their memory, in memory, and mapped."""
    game = {"name": "flop-holdem", "max_raises": raises}

    def document(resident: str, iterations: int | None = None) -> dict[str, Any]:
        return _document(game, strata, iterations or cycle or CYCLE_ITERATIONS, cycles, workers, resident)

    whole = make_plan(config_from(document("1TB"), "the benchmark"), folder)
    size = sum(whole["bytes_per_street"])
    resident = f"{int(size * share)}B"
    plan = make_plan(config_from(document(resident), "the benchmark"), folder, seconds=_MEASURED_SECONDS)
    cycle = cycle or plan["proposed_cycle_iterations"]
    speed = disk_speed(folder)
    click.echo(
        f"tables {size / 1e9:.2f} GB, resident {bytes_of(resident) / 1e9:.2f} GB in {plan['blocks']} blocks, limit "
        f"{plan['least_memory_bytes'] / 1e9:.2f} GB{'' if os.access(_GROUPS, os.W_OK) else ' (not enforced)'}; disk "
        f"{speed.write / 1e6:.0f} MB/s written, {speed.read / 1e6:.0f} read; {cycles} cycles of {cycle:,} iterations, "
        f"{plan['cycle_moving_seconds']:.1f} s to move"
    )
    with tempfile.TemporaryDirectory(dir=folder) as text:
        base = Path(text)
        disk = _trained(base / "disk", document(resident), plan["least_memory_bytes"], patience)
        click.echo(f"from the disk  {disk}")
        shutil.rmtree(base / "disk", ignore_errors=True)
        memory = _trained(base / "memory", document("1TB"), None, patience)
        click.echo(f"in memory      {memory}")
        shutil.rmtree(base / "memory", ignore_errors=True)
        if disk["seconds"] and memory["seconds"]:
            same = "the same bits" if disk["digest"] == memory["digest"] else "OTHER BITS"
            click.echo(f"{disk['seconds'] / memory['seconds']:.2f} times as long, {same}")
        speed = disk_speed(folder)
        click.echo(f"disk at the end: {speed.write / 1e6:.0f} MB/s written, {speed.read / 1e6:.0f} read")
        for name in ("in turn", "ordinary") if mapped_seconds else ():
            found = _trained(
                base / "mapped", _mapped(document("1TB"), base, name), plan["least_memory_bytes"], mapped_seconds
            )
            shutil.rmtree(base / "mapped", ignore_errors=True)
            rate = found["nodes"] / max(1e-9, found["training_seconds"])
            ratio = rate * disk["training_seconds"] / max(1, disk["nodes"])
            click.echo(f"mapped, {name}  {found}: {ratio:.2g} times the nodes a second")
