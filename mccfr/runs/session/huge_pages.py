"""Whether a run's tables will lie in huge pages, and what to switch on where they will not."""

from typing import Any

import numpy as np

from mccfr.config.tables import Config
from mccfr.tables.layout import TableLayout
from storage.pages import SETTINGS, page_settings

_BYTES, _GAIN = (1e7, 1e8, 3e8, 1.5e9), (1.0, 1.11, 1.23, 1.27)
"""How many times as fast external sampling is with tables of so many bytes in huge pages (docs/measured)."""


def huge_page_plan(config: Config, layout: TableLayout) -> dict[str, Any]:
    """The fields of `huge_pages` in `plan`, for the pool of a configuration on this machine.

    own, shared  the system's settings for memory of a process's own and for shared memory; None: not known
    given        whether the tables of this run would get huge pages
    gain         how many times as fast a sampled run may be with them, by the size of its tables
    advice       what to switch on, None where nothing is gained
    """
    settings, threads = page_settings(), config.run.trains_in_threads
    given = settings.given(shared=not threads)
    gain = float(np.interp(np.log(max(1, layout.nbytes)), np.log(_BYTES), _GAIN))
    ways = []
    if not given and gain > 1:
        if not threads and settings.given(shared=False) and config.run.workers > 0 and config.run.strata is None:
            ways.append("run.pool = 'threads'")
        name, word = ("enabled", "madvise") if threads else ("shmem_enabled", "advise")
        if (settings.own if threads else settings.shared) is not None:
            ways.append(f"'echo {word} > {SETTINGS / name}' as root")
    advice = f"{' or '.join(ways)} may make sampling {gain:.2f} times as fast" if ways else None
    return {"own": settings.own, "shared": settings.shared, "given": given, "gain": round(gain, 3), "advice": advice}
