"""Speed of kernels and of whole runs, as ratios taken in one sitting.

Machines drift: every comparison alternates its sides and quotes medians.  Run on an otherwise idle machine.
"""

import rich_click as click
from bench_kernel import kernel
from bench_pairs import pairs
from bench_resolving import resolving
from bench_solve import solve
from bench_vector import vector


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def bench() -> None:
    """Benchmarks as ratios in one sitting; see docs/performance.md for figures and what they mean."""


for command in (kernel, pairs, resolving, solve, vector):
    bench.add_command(command)


if __name__ == "__main__":
    bench()
