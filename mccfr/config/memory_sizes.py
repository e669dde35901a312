"""Parses memory sizes: `16GB`, `512 MiB`, `1.5e9 B`."""

import re

_UNITS = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}
_KNOWN = {unit.lower(): factor for unit, factor in _UNITS.items()}
_MOST = 10**18


def bytes_of(text: str) -> int:
    """Return the number of bytes of a text such as `16GB` or `512 MiB`, rounded down.

    Units may be in any case. Raises `ValueError` for a number without a unit, for a text of another form, and outside
    of 1 to 10^18 bytes. Its message is the end of a sentence that begins with "KEY must be".
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?(?:[eE][0-9]+)?) ?([A-Za-z]*)", text.strip())
    if match is not None and not match[2]:
        raise ValueError(f"written with its unit: {text} can mean {match[1]}B, {match[1]}MB or {match[1]}GB")
    if match is None or match[2].lower() not in _KNOWN:
        raise ValueError(f"a number and one of {', '.join(_UNITS)}, such as '16GB'")
    amount = float(match[1]) * _KNOWN[match[2].lower()]
    if not 1 <= amount <= _MOST:
        raise ValueError(f"from 1 byte to {_MOST:,} bytes")
    return int(amount)
