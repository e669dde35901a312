"""How fast a block of strata moves, against the disk by itself: in turn, so that both meet the disk of the moment."""

import tempfile
import time
from pathlib import Path

import numpy as np
import rich_click as click

from storage.blocks import BlockStore, Partition
from storage.disk_speed import disk_speed
from storage.mapping import create_regions, map_regions
from storage.schema import ArraySpec

_SLOTS, _CELL_BYTES, _TABLES = 256, 4, 4


@click.command()
@click.option("--megabytes", default=1000, help="Of the block, in four tables.")
@click.option("--rounds", default=7)
@click.option("--format", "form", type=click.Choice(["zarr", "hdf5"]), default="zarr")
@click.option("--folder", type=click.Path(path_type=Path), default=Path(), help="On the disk that is measured.")
def blocks(megabytes: int, rounds: int, form: str, folder: Path) -> None:
    """A block to the disk and back, against the disk by itself."""
    rows = megabytes * 10**6 // (_TABLES * _SLOTS * _CELL_BYTES)
    specs = [
        ArraySpec(f"{kind}/street1/player{player}", (rows, _SLOTS), "float32", ("bucket", "slot"))
        for kind in ("regret", "strategy_sum")
        for player in (0, 1)
    ]
    parts = Partition(tuple(specs), {spec.name: [0, rows] for spec in specs})
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory, tempfile.TemporaryDirectory(dir=folder) as disk:
        mapping = map_regions(create_regions(Path(memory) / "cells", specs), writable=True, populate=True)
        arrays = {spec.name: mapping.view(spec.name) for spec in specs}
        for cells in arrays.values():
            cells[...] = np.random.default_rng(0).random(cells.shape, np.float32)
        store, ratios = BlockStore(Path(disk), parts, {}, format=form), []
        for _ in range(rounds):
            speed = disk_speed(Path(disk))
            began = time.perf_counter()
            store.write(0, arrays)
            between = time.perf_counter()
            store.read(0, arrays)
            seconds = (between - began, time.perf_counter() - between)
            store.settle()
            ratios.append([parts.nbytes(0) / each / rate for each, rate in zip(seconds, speed, strict=True)])
            click.echo(
                f"disk {speed.write / 1e6:,.0f} MB/s written, {speed.read / 1e6:,.0f} read; block "
                f"{parts.nbytes(0) / seconds[0] / 1e6:,.0f} and {parts.nbytes(0) / seconds[1] / 1e6:,.0f}"
            )
        store.close()
    for way, found in zip(("written", "read"), np.array(ratios).T, strict=True):
        low, middle, high = np.quantile(found, [0.25, 0.5, 0.75])
        click.echo(f"{way}: {middle:.2f} of the disk's speed (quartiles {low:.2f}, {high:.2f}; {rounds} rounds)")
