"""Compiles both sides of a comparison for one processor, and describes this machine."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import rich_click as click

NATIVE = "native"
"""Name for the processor of this machine."""

march_option = click.option(
    "--march",
    default=NATIVE,
    show_default=True,
    help="Target processor of both sides by the name of gcc and LLVM. haswell has AVX2, but no AVX-512.",
)


def make_kernels_for(march: str) -> None:
    """Make numba compile kernels for a processor, by LLVM's name, in this process and its children.

    `native` changes nothing.  Raises `ValueError` if numba is imported already, because its import reads the name.
    """
    if march == NATIVE:
        return
    if "numba" in sys.modules:
        raise ValueError(f"--march {march} comes too late: numba has been imported and compiles for this processor")
    os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"] = march, "-prefer-256-bit"  # widest, as in runs


def compiled(source: Path, program: Path, options: Sequence[str]) -> Path:
    """Compile a C program by gcc; `ValueError` with gcc's first error."""
    result = subprocess.run(
        ["gcc", "-O3", *options, str(source), "-o", str(program), "-lm"], check=False, stderr=subprocess.PIPE, text=True
    )
    if result.returncode:
        errors = [line for line in result.stderr.splitlines() if "error:" in line] or result.stderr.splitlines()
        raise ValueError(f"gcc -O3 {' '.join(options)} ended with status {result.returncode}: {' '.join(errors[:1])}")
    return program


def machine() -> str:
    """Return processor, vector instructions and huge-page setting as text."""
    facts = dict(line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)
    facts = {key.strip(): value.strip() for key, value in facts.items()}
    vectors = [flag for flag in ("avx2", "avx512f") if flag in facts.get("flags", "").split()]
    pages = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    huge = pages.read_text().strip() if pages.exists() else "unknown"
    return f"{facts.get('model name', 'unknown processor')} ({', '.join(vectors) or 'no AVX2'}), huge pages: {huge}"
