"""Benchmarks of kernels and whole runs, as ratios of two sides measured in turn.

A machine's speed drifts, so every comparison alternates its sides and reports medians.  Run it on an idle machine.
"""

import rich_click as click
from bench_kernel import kernel
from bench_pairs import pairs
from bench_resolving import resolving
from bench_seats import seats
from bench_sizes import sizes
from bench_solve import solve
from bench_vector import vector
from bench_view import view


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def bench() -> None:
    """Benchmarks, most as ratios of two sides measured in turn; docs/performance.md explains the figures."""


for command in (kernel, pairs, resolving, seats, sizes, solve, vector, view):
    bench.add_command(command)


if __name__ == "__main__":
    bench()
