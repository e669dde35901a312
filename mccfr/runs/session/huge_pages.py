"""Predicts whether a run's tables get huge pages, and the gain in speed."""

from typing import Any

import numpy as np

from mccfr.tables.table_layout import TableLayout
from storage.huge_page_counts import gives_huge_pages

_BYTES, _GAIN = (1e7, 1e8, 3e8, 1.5e9), (1.0, 1.11, 1.23, 1.27)
"""Table sizes in bytes, and the speed of external sampling with huge pages relative to 4 KiB pages
(docs/measured/performance.md).
"""
_SWITCH = "'echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled' as root, or Linux 6.1,"


def huge_page_plan(layout: TableLayout) -> dict[str, Any]:
    """Return the fields of `huge_pages` in `plan`, for this machine.

    given   whether the tables of this run would get huge pages
    gain    expected ratio of sampling speeds with and without them, by table size
    advice  a sentence on the setting to change; None if it would not help
    """
    given = gives_huge_pages()
    gain = float(np.interp(np.log(max(1, layout.nbytes)), np.log(_BYTES), _GAIN))
    advice = f"{_SWITCH} may make sampling {gain:.2f} times as fast" if gain > 1 and not given else None
    return {"given": given, "gain": round(gain, 3), "advice": advice}
