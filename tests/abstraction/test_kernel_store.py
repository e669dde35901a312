"""Cache of compiled kernels: damaged files are compiled again, files writable by others are ignored."""

import os
import pickle
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from mutants import mutant

from abstraction.kernels import kernel_files, kernel_store
from abstraction.kernels.kernel_store import KernelStore, distrusted, packed, unpacked

KEY = ((), ("x86_64", "a processor", "+features"), ("code", "cells"))


class Trap:
    """An object whose pickle creates the folder `mark` when it is loaded."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_store, "_said", set())
    kernels = KernelStore(tmp_path, "walk.go-12.py311", "stamp")
    kernels.save(KEY, {"code": b"\x90" * 999})
    return kernels


def kernel_file(folder):
    (path,) = folder.glob("*.kernel")
    return path


def test_a_kernel_is_loaded_only_with_the_same_key_name_and_source(store, tmp_path, caplog):
    assert store.load(KEY) == {"code": b"\x90" * 999}
    assert store.load(((), ("x86_64", "another", ""), KEY[2])) is None
    assert KernelStore(tmp_path, "walk.go-12.py311", "edited").load(KEY) is None
    assert KernelStore(tmp_path, "walk.went-12.py311", "stamp").load(KEY) is None
    assert caplog.messages == []


def test_damaged_files_are_ignored_with_one_warning(store, tmp_path, caplog):
    """A file that is empty, truncated, longer, altered or another kernel's counts as absent."""
    path, rng = kernel_file(tmp_path), random.Random(5)
    whole, other = path.read_bytes(), packed("another ()\nstamp", pickle.dumps(Trap(tmp_path / "mark")))
    damaged = [b"", whole[: len(whole) // 2], whole[:-1], whole + b"\0", other, b"\x80\x04." * 20, whole[15:]]
    for _ in range(300):
        place = rng.randrange(len(whole))
        damaged.append(whole[:place] + bytes([whole[place] ^ 1 << rng.randrange(8)]) + whole[place + 1 :])
    for content in damaged:
        path.write_bytes(content)
        assert store.load(KEY) is None
    path.unlink()
    path.mkdir()
    assert store.load(KEY) is None
    store.save(KEY, 1)  # a directory has its name: the error is ignored
    path.rmdir()
    store.save(KEY, {"code": 2})
    assert store.load(KEY) == {"code": 2}
    assert not (tmp_path / "mark").exists()
    (message,) = caplog.messages
    assert path.name in message and "is compiled again" in message


def test_a_planted_missing_checksum_check_is_caught(store, tmp_path):
    """Planted error: the checksum is not compared, so a changed kernel is loaded."""
    path = kernel_file(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"\x90" * 9, b"\x91" * 9, 1))
    assert store.load(KEY) is None
    wrong = mutant(kernel_store, (" or data[len(_MAGIC) : start] != _checksum(body)", ""))
    assert wrong.KernelStore(tmp_path, "walk.go-12.py311", "stamp").load(KEY) not in (None, {"code": b"\x90" * 999})


def test_a_kernel_is_written_durably(tmp_path):
    from storage import durable

    with durable.recording() as operations:
        KernelStore(tmp_path, "k", "").save(KEY, 1)
    assert [operation.kind for operation in operations] == ["write_file", "fsync_file", "rename", "fsync_dir"]


def test_a_directory_that_other_users_own_or_may_write_to_is_not_used(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(kernel_store, "_said", set())
    home = tmp_path / "open" / "home"
    home.mkdir(parents=True)
    assert distrusted(home) is None
    for mode, trusted in ((0o777, False), (0o1777, True), (0o755, True), (0o702, False)):
        home.parent.chmod(mode)
        assert (distrusted(home) is None) is trusted, oct(mode)
    home.parent.chmod(0o755)
    home.chmod(0o1777)  # a sticky bit does not stop others from creating files in the directory itself
    assert "others may write" in distrusted(home)
    home.chmod(0o777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(home))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    chosen = kernel_files.choose_directory()
    assert not chosen.is_relative_to(home) and chosen.stat().st_mode & 0o777 == 0o700
    (message,) = caplog.messages
    assert str(home) in message and "NUMBA_CACHE_DIR" in message
    home.chmod(0o700)
    assert kernel_files.choose_directory().parent == home
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    if Path(tmp_path).stat().st_uid:
        assert "belongs to another user" in distrusted(home)


def test_kernels_are_kept_in_a_private_directory_if_the_configured_one_is_unsafe(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_store, "_said", set())
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "open"))
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    chosen = kernel_files.choose_directory()
    assert chosen.parent == shared / f"mccfr-kernels-{os.geteuid()}" and kernel_files.choose_directory() == chosen
    chosen.parent.chmod(0o777)  # others may write there, so the process gets a directory of its own
    private = kernel_files.choose_directory()
    assert private.parent == shared and private.stat().st_mode & 0o777 == 0o700
    chosen.parent.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o700)
    chosen.parent.symlink_to(tmp_path / "elsewhere")
    assert kernel_files.choose_directory().parent == shared


def test_a_group_with_write_permission_is_trusted_only_if_it_is_the_users_own(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_store, "_own_group", lambda _: False)
    tmp_path.chmod(0o770)
    assert "others may write" in distrusted(tmp_path)
    monkeypatch.setattr(kernel_store, "_own_group", lambda _: True)
    assert distrusted(tmp_path) is None


PROGRAM = """
from abstraction.kernels.jit import njit, watch_compiling
watch_compiling(lambda event: print("compiled"), lambda event: None)

@njit
def above(x):
    return x + 1

assert above(1) == 2
"""


def test_a_process_continues_after_an_emptied_cache_file_and_a_foreign_pickle(tmp_path):
    """Compile again with one warning, as after a power cut or with a file of another user."""
    path, home = tmp_path / "program.py", tmp_path / "home"
    path.write_text(PROGRAM)

    def run():
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(home), "TMPDIR": str(tmp_path)}
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True, env=environment)
        return done.stdout, done.stderr

    assert run() == ("compiled\n", "")
    (kept,) = home.rglob("*.kernel")
    kept.write_bytes(b"")
    out, err = run()
    assert out == "compiled\n" and err.count("\n") == 1 and "is compiled again" in err
    assert run() == ("", "")
    name, _ = unpacked(kept.read_bytes())
    kept.write_bytes(packed(name, pickle.dumps(Trap(tmp_path / "mark"))))
    home.chmod(0o777)
    out, err = run()
    assert out == "compiled\n" and "others may write to" in err and not (tmp_path / "mark").exists()
