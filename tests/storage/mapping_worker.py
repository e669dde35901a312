"""Maps and writes regions on request, in JSON lines; the fixture `worker` runs it as another process."""

import json
import sys

import numpy as np

from storage import mapping


def values(region, seed):
    """Return the values that `fill` writes to a region for a seed, in its shape and dtype."""
    generator = np.random.default_rng([seed, *region.name.encode()])
    return generator.integers(1, 100, region.shape).astype(region.dtype)


def fill(regions, seed):
    """Write all regions, with one mapping per dtype."""
    for dtype in sorted({region.dtype for region in regions}):
        group = [region for region in regions if region.dtype == dtype]
        mapped = mapping.map_regions(group, writable=True, populate=True)
        for region in group:
            start = mapped.offsets[region.name]
            cells = values(region, seed).ravel()
            mapped.flat[start : start + cells.size] = cells
        mapped.close()


def main():
    for line in sys.stdin:
        request = json.loads(line)
        if "cells" in request:
            block = mapping.map_cells(request["cells"], request["shape"])
            block.cells[...] += request["add"]
        else:
            fill(mapping.regions_from_json(request["regions"]), request["seed"])
        print("done", flush=True)


if __name__ == "__main__":
    main()
