"""`tools/fuzz FORMAT MINUTES`: fuzzes a format with new seeds, in a process of 1 GiB of address space."""

import os
import resource
import sys
from collections import Counter

from fuzzing import FORMATS, MEMORY, format_named, search


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[0] not in FORMATS:
        print(f"usage: tools/fuzz FORMAT MINUTES, with FORMAT one of: {', '.join(FORMATS)}", file=sys.stderr)
        return 2
    name, minutes = arguments[0], float(arguments[1])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    format_named(name)
    first = int.from_bytes(os.urandom(6))
    print(f"{name}: {minutes:g} minutes from seed {first}", flush=True)
    found = search(name, 60 * minutes, first, lambda text: print(text, flush=True))
    print(f"{found.good} inputs were good, {found.refused} refused, {len(found.findings)} neither", flush=True)
    for place, count in Counter(finding.place for finding in found.findings).most_common():
        print(f"{count:6} {place}")
    return 1 if found.findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
