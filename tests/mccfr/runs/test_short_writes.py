"""Partial and interrupted system calls lose no data."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from sessions import assert_same

from mccfr.runs.directory.run import open_run
from mccfr.runs.directory.verification import problems_of

PRELOADED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static long calls, halved, interrupted; /* of one process; how many matters little, so that they need no lock */

static int is_file(int file) {
    struct stat found;
    return fstat(file, &found) == 0 && S_ISREG(found.st_mode);
}

/* 0: go on; -1: a signal came first.  Every third call on a file meets one, others write half. */
static int disturbed(int file, size_t *count) {
    if (!is_file(file)) return 0;
    if (++calls % 3 == 0) { interrupted++; errno = EINTR; return -1; }
    if (*count > 1) { halved++; *count = *count / 2; }
    return 0;
}

ssize_t write(int file, const void *data, size_t count) {
    ssize_t (*next)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    return disturbed(file, &count) ? -1 : next(file, data, count);
}

ssize_t pwrite(int file, const void *data, size_t count, off_t at) {
    ssize_t (*next)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite64");
    return disturbed(file, &count) ? -1 : next(file, data, count, at);
}

ssize_t pwrite64(int file, const void *data, size_t count, off_t at) { return pwrite(file, data, count, at); }

int fsync(int file) {
    static int (*next)(int), odd;
    if (!next) next = dlsym(RTLD_NEXT, "fsync");
    odd = !odd;
    if (odd) { interrupted++; errno = EINTR; return -1; }
    return next(file);
}

__attribute__((destructor)) static void tell(void) {
    const char *name = getenv("TOLD");
    FILE *told = halved && name ? fopen(name, "w") : NULL;
    if (told) { fprintf(told, "[%ld, %ld]\n", halved, interrupted); fclose(told); }
}
"""
CONFIG = """
[game]
name = "leduc"
[solver]
seed = 3
[tables]
format = "{format}"
[run]
workers = 0
[evaluation]
method = "exact"
[export]
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The calls, compiled."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("preloaded")
    (folder / "calls.c").write_text(PRELOADED)
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", folder / "calls.so", folder / "calls.c", "-ldl"], check=True
    )
    return folder / "calls.so"


def test_a_call_that_is_not_repeated_would_leave_half(tmp_path, library):
    """The planted error."""
    once = "import os; print(os.write(os.open('file', os.O_CREAT | os.O_WRONLY), b'12345678'))"
    done = subprocess.run(
        [sys.executable, "-c", once], cwd=tmp_path, env=os.environ | {"LD_PRELOAD": str(library)}, check=True, stdout=-1
    )
    assert done.stdout == b"4\n" and (tmp_path / "file").read_bytes() == b"1234"


@pytest.mark.parametrize("tables", ["zarr", "hdf5"])
def test_short_and_interrupted_calls_change_nothing(tmp_path, library, tables):
    (tmp_path / "leduc.toml").write_text(CONFIG.format(format=tables))
    told = tmp_path / "told.json"
    for name, disturbance in (("quiet", {}), ("run", {"LD_PRELOAD": str(library), "TOLD": str(told)})):
        arguments = [sys.executable, "-m", "mccfr", "solve", "leduc.toml", "--run", name, "--iterations", "2000"]
        environment = os.environ | disturbance
        subprocess.run(arguments, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=300)
    halved, interrupted = json.loads(told.read_text())
    assert halved > 30 and interrupted > 30
    assert problems_of(tmp_path / "run") == [] and problems_of(tmp_path / "run-policy") == []
    assert_same(open_run(tmp_path / "run"), open_run(tmp_path / "quiet"))
    for path in sorted((tmp_path / "quiet-policy").glob("*.npy")):
        assert path.read_bytes() == (tmp_path / "run-policy" / path.name).read_bytes()
