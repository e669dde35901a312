"""Compiled kernels: cache location, sharing between processes, inlined functions.

Shows:

* Several processes, and copies of the same sources, compile each kernel once
  (test_several_processes_compile_each_kernel_once, test_a_copy_of_the_packages_uses_the_same_compiled_kernels)
* Child processes find the kernels of their parent (test_child_processes_use_the_kernel_directory_of_their_parent)
* A signal does not interrupt the compilation of a kernel
  (test_a_signal_during_compilation_is_delivered_after_it)
* Commands import numba and zarr only if they need them (test_starting)
"""

import fcntl
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from refusals import refused

from abstraction.kernels import jit, kernel_files
from abstraction.kernels.compiling import _watch, told_of_compiling
from abstraction.kernels.jit import decorator, njit, part_njit
from mccfr.common.rng import new_stream


@part_njit
def following(number):
    return number + 1


@njit
def after(number):
    return following(number)


def test_a_part_kernel_cannot_be_called_from_python():
    """numba would jump to an invalid address, before and after a kernel has compiled the part."""
    for _ in range(2):
        refused(r"test_jit.following is a part of kernels", following, 1, error=TypeError)
        assert after(1) == 2


def test_a_signal_during_compilation_is_delivered_after_it():
    """numba cannot use a function whose compilation was interrupted: "no compiled object yet"."""
    kernel = decorator("njit", cached=False)(lambda number: following(number) + 1)

    class Interrupted(BaseException):
        """Raised by the handler."""

    def interrupt(*_):
        moments.append(_watch.depth > 0)
        raise Interrupted

    moments, before = [], signal.signal(signal.SIGUSR1, interrupt)
    try:
        with (
            told_of_compiling(lambda seconds: seconds and os.kill(os.getpid(), signal.SIGUSR1)),
            pytest.raises(Interrupted),
        ):
            kernel(1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert moments == [False] and len(kernel.signatures) == 1 and kernel(1) == 3


def test_child_processes_use_the_kernel_directory_of_their_parent(tmp_path, monkeypatch):
    """The environment passes on the directory, and the child does not choose another one inside it."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    chosen = kernel_files.choose_directory()
    assert chosen.parent == tmp_path
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(chosen))
    assert kernel_files.choose_directory() == chosen
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / ("0" * 16)))  # another version's
    assert kernel_files.choose_directory() == chosen


PROGRAM = """
import sys
from abstraction.kernels.jit import event, njit, part_njit

class Heard(event.Listener):
    def on_start(self, started):
        print(started.data["dispatcher"].py_func.__name__, started.data["args"][0], flush=True)

    def on_end(self, _):
        pass

event.register("numba:compile", Heard())

@part_njit
def below(x):
    return x + 1

@njit
def above(x):
    return below(x)

@njit
def beside(x):
    return below(x)

print("ready", flush=True)
sys.stdin.readline()
for number in map(eval, sys.argv[2:]):
    assert globals()[sys.argv[1]](number) == number + 1
"""


def start_program(path, home, numbers, kernel="above"):
    """Start a process that calls a kernel with numbers once it reads a line from standard input."""
    path.write_text(PROGRAM)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(home)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, path, kernel, *numbers], env=environment, **pipes)
    assert process.stdout.readline() == "ready\n"
    return process


def test_several_processes_compile_each_kernel_once(tmp_path):
    """Start two processes at once, with two types each, one of them in common.

    A third process finds all of them compiled. Another kernel finds a shared part, whose machine code is not kept.
    """
    home, path = tmp_path / "home", tmp_path / "program.py"
    pair = [start_program(path, home, numbers) for numbers in (["1", "1.5"], ["1.5", "1j"])]
    for process in pair:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=60)[0].split("\n") for process in pair]
    assert [process.returncode for process in pair] == [0, 0]
    compiled = sorted(line for lines in said for line in lines if line)
    assert compiled == [f"{name} {kind}" for name in ("above", "below") for kind in ("complex128", "float64", "int64")]
    assert start_program(path, home, ["1", "1.5", "1j"]).communicate("go\n", timeout=60)[0] == ""
    other = start_program(path, home, ["1.5"], "beside").communicate("go\n", timeout=60)[0]
    assert other == "beside float64\n"


COUNTING = """
import sys
import numpy as np
from abstraction.kernels.jit import allocating_njit, njit

@allocating_njit
def counted(cells):
    return cells.view(np.float64)

@njit
def uncounted(cells):
    return cells.view(np.float64)[1]

cells = np.arange(2.0).view(np.uint8)
for name in sys.argv[1:]:
    print(globals()[name](cells))
"""


def test_a_cached_kernel_is_loaded_with_numbas_reference_counting(tmp_path):
    """numba compiles a view once for all kernels of a process: with the first kernel that has one."""
    path = tmp_path / "program.py"
    path.write_text(COUNTING)
    told = {"env": {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "home")}, "capture_output": True, "text": True}
    for names, said in (
        (("counted", "uncounted"), "[0. 1.]\n1.0\n"),
        (("uncounted",), "1.0\n"),
        (("counted",), "[0. 1.]\n"),
    ):
        done = subprocess.run([sys.executable, path, *names], check=False, **told)
        assert (done.returncode, done.stdout) == (0, said), done.stderr
    (kept,) = (tmp_path / "home").rglob("program.uncounted*.kernel")
    assert b"NRT_" in kept.read_bytes(), "this numba compiles a view for each kernel: the case is gone"


ELSEWHERE = """
from abstraction.kernels.jit import watch_compiling
watch_compiling(print, print)
import mccfr.common.rng
print(mccfr.common.rng.__file__, mccfr.common.rng.new_stream(1, 2)[0])
"""


def test_a_copy_of_the_packages_uses_the_same_compiled_kernels(tmp_path):
    """The copy's path and file times do not matter; it compiles nothing."""
    wanted = new_stream(1, 2)[0]
    root = Path(jit.__file__).parents[2]
    for package in ("abstraction", "mccfr", "storage"):
        for path in (root / package).rglob("*.py"):
            copy = tmp_path / path.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    told = {"env": {**os.environ, "PYTHONPATH": str(tmp_path)}, "cwd": tmp_path, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, "-c", ELSEWHERE], check=True, **told)
    assert done.stdout == f"{tmp_path / 'mccfr/common/rng.py'} {wanted}\n"


def part_and_kernel():
    """Return a part and a kernel that calls it; neither is compiled yet."""
    below, above = jit.decorator("part_njit", cached=False), jit.decorator("njit", cached=False)

    @below
    def part(number):
        return number + 1

    @above
    def kernel(number):
        return part(number)

    return part, kernel


def test_parts_have_no_machine_code():
    """Kernels have machine code, for Python and for other kernels."""
    part, kernel = part_and_kernel()
    kernel(1)
    for each, has in ((part, False), (kernel, True)):
        (compiled,) = each.dispatcher.overloads.values()
        assert bool(compiled.library.get_pointer_to_function(compiled.fndesc.mangled_name)) is has
        assert "preserved_ir" not in compiled.metadata, "a copy of the function that nothing uses"


def test_a_part_is_internal_to_its_kernel(monkeypatch):
    """A part is optimised only within its kernel; it is internal before unused arguments are removed."""
    _, kernel = part_and_kernel()
    jit.types.int64  # noqa: B018 - which imports numba
    codegen, found = sys.modules["numba.core.codegen"], {}
    optimise = codegen.CPUCodeLibrary._optimize_final_module

    def watched(library):
        name, functions = library.name.rsplit(".", 1)[-1], library._final_module.functions
        found[name] = {each.linkage.name for each in functions if "4part" in each.name}
        optimise(library)

    monkeypatch.setattr(codegen.CPUCodeLibrary, "_optimize_final_module", watched)
    kernel(1)
    assert found == {"kernel": {"internal"}}


def test_an_unknown_numba_version_compiles_parts_as_usual(tmp_path, monkeypatch):
    """numba's internals stay unchanged, and kernels give the same results."""
    home, path = tmp_path / "home", tmp_path / "program.py"
    monkeypatch.setattr(
        sys.modules[__name__], "PROGRAM", f"from abstraction.kernels import jit\njit.KNOWN_VERSIONS = ()\n{PROGRAM}"
    )
    made = start_program(path, home, ["1"]).communicate("go\n", timeout=60)[0]
    assert made.split() == ["above", "int64", "below", "int64"]


def test_the_wait_for_a_kernel_that_another_process_compiles_is_limited(tmp_path, monkeypatch):
    """Wait for a compiling process while it works, but not if it is stopped.

    A compilation error releases the lock, and restores the thresholds of the garbage collector.
    """
    monkeypatch.setattr(kernel_files, "_PATIENCE_SECONDS", 0.1)

    @njit
    def twice(number):
        return 2 * number

    @njit
    def wrong(number):
        return number.nothing

    monkeypatch.setattr(jit._numba().config, "CACHE_DIR", str(tmp_path))
    folder = tmp_path / kernel_files._LOCKS
    folder.mkdir()
    with (folder / f"{__name__}.twice").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        began = time.monotonic()
        assert twice(2) == 4
        assert time.monotonic() - began >= 0.1
        with monkeypatch.context() as working:
            working.setattr(kernel_files, "_processor_time", lambda pid: f"{pid} {time.monotonic()}")
            release = threading.Timer(0.5, fcntl.flock, (held, fcntl.LOCK_UN))
            release.start()
            assert twice(2.5) == 5
            assert not release.is_alive(), "it was not waited for"
    looked_for_after = gc.get_threshold()
    with pytest.raises(jit.errors.TypingError):
        wrong(1)
    assert gc.get_threshold() == looked_for_after
    with (folder / f"{__name__}.wrong").open() as free:
        fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)
