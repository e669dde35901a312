"""`tools/bench vector --march`: both sides' code is for the processor that is named."""

import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner
from places import ROOT
from refusals import refused

sys.path.insert(0, str(ROOT / "tools"))

import bench_vector

from abstraction.kernels.jit import types

SHOW = """
import bench, bench_vector
bench_vector.make_kernels_for("haswell")
from abstraction.kernels.jit import types
types.int64
from numba.core.registry import cpu_target
print(cpu_target.target_context.codegen().magic_tuple()[1:])
"""
"""Of the whole program: what is imported with other benchmarks may not bring numba along."""


def test_kernels_are_made_for_the_processor_that_is_named():
    shown = subprocess.run(
        [sys.executable, "-c", SHOW],
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tools'}"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert shown.stdout.strip() == "('haswell', '-prefer-256-bit')"


def test_a_processor_named_too_late_is_refused():
    assert types.int64 is not None  # imports numba
    refused = CliRunner().invoke(bench_vector.vector, [str(bench_vector.ENDGAME), "--march", "haswell"])
    assert refused.exit_code == 2 and "comes too late" in refused.output


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_the_c_program_is_made_for_the_processor_that_is_named(tmp_path):
    source = tmp_path / "shown.c"
    source.write_text('#include <stdio.h>\n#ifndef __haswell__\n#error other\n#endif\nint main(){puts("made");}\n')
    program = bench_vector.c_program(source, tmp_path, "float32", "haswell")
    assert subprocess.run([program], check=True, capture_output=True, text=True).stdout == "made\n"
    for march, said in (("nonsense", "nonsense"), ("znver2", "other")):
        refused(f"-march={march} .* status 1: .*{said}", bench_vector.c_program, source, tmp_path, "float32", march)
