"""Whether a run's tables will lie in huge pages, and what to switch on where they will not."""

from typing import Any

import numpy as np

from mccfr.tables.layout import TableLayout
from storage.pages import gives_huge_pages

_BYTES, _GAIN = (1e7, 1e8, 3e8, 1.5e9), (1.0, 1.11, 1.23, 1.27)
"""Speed of external sampling with tables of so many bytes in huge pages, over 4 KiB: docs/measured/performance.md."""
_SWITCH = "'echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled' as root, or Linux 6.1,"


def huge_page_plan(layout: TableLayout) -> dict[str, Any]:
    """The fields of `huge_pages` in `plan`, on this machine.

    given   whether the tables of this run would get huge pages
    gain    how many times as fast a sampled run may be with them, by the size of its tables
    advice  what to switch on, None where nothing is gained
    """
    given = gives_huge_pages()
    gain = float(np.interp(np.log(max(1, layout.nbytes)), np.log(_BYTES), _GAIN))
    advice = f"{_SWITCH} may make sampling {gain:.2f} times as fast" if gain > 1 and not given else None
    return {"given": given, "gain": round(gain, 3), "advice": advice}
