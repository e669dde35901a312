"""The user's list of code: hashes of Python modules that the user's own commands have executed.

A module that a run or exported networks name is imported without --code only if the list has it. The list is the
folder `mccfr/code` in the user's configuration folder. Each entry is a JSON file for one module: the folder of the
module, and the SHA-256 of every file imported from there, the module's own included. Entries are only added; the user
may delete the folder at any time.
"""

import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from abstraction.kernels.kernel_store import distrusted

_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME_DIGITS = 32  # digits of a hash in names of entries
_MOST_BYTES = 16 << 20
"""Most bytes of one module's source, and of one entry."""


class CodeEntry(msgspec.Struct, frozen=True):
    """A Python module that the user has executed, with hashes of its files; stored as JSON.

    module  its name
    folder  absolute path of the folder in which it was found
    files   {path below the folder: SHA-256} of the module's file and of all files imported from the folder
    """

    module: str
    folder: str
    files: dict[str, str]

    def content(self) -> dict[str, bytes]:
        """Return {absolute path: content} of all files; `ValueError` if one is missing or has changed."""
        contents = {}
        for name, checksum in self.files.items():
            path = str(Path(self.folder, name))
            try:
                contents[path] = read_regular(path)
            except OSError as error:
                raise ValueError(f"{path} cannot be read: {error.strerror}") from None
            if sha256(contents[path]).hexdigest() != checksum:
                raise ValueError(f"{path} has changed since you ran it")
        return contents


def list_folder() -> Path:
    """Return the folder with hashes of the modules that the user has executed; it need not exist.

    Raises `OSError` if the user has no home directory, unless XDG_CONFIG_HOME is an absolute path.
    """
    configured = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    try:
        return (configured if configured.is_absolute() else Path.home() / ".config") / "mccfr" / "code"
    except RuntimeError as error:
        raise OSError(f"this user has no configuration folder: {error}") from None


def add(entry: CodeEntry, main: str) -> None:
    """Note on disk that the user has executed a module, by the hashes of its files.

    main  SHA-256 of the module's own file, in hexadecimal digits, by which `find` finds the entry

    If the folder cannot be written, nothing is added; `problem` returns the reason.
    """
    document = json.dumps(msgspec.to_builtins(entry), sort_keys=True).encode()
    with suppress(OSError):
        target = _private_list_folder() / f"{main[:_NAME_DIGITS]}-{sha256(document).hexdigest()[:_NAME_DIGITS]}.json"
        if target.exists():
            return
        temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
        try:
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(file, "wb") as opened:
                opened.write(document)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


def find(module: str, main: str) -> Iterator[CodeEntry]:
    """Yield the entries of a module that the user has executed before with the same source file.

    Yields nothing if there are none, or if the folder of the entries cannot be used.

    main  SHA-256 of the module's own file, in hexadecimal digits
    """
    if not _SHA256.fullmatch(main):
        return
    try:
        paths = sorted(_private_list_folder().glob(f"{main[:_NAME_DIGITS]}-*.json"))
    except OSError:
        return
    for path in paths:
        with suppress(OSError, msgspec.DecodeError):
            entry = msgspec.json.decode(read_regular(path), type=CodeEntry)
            if distrusted(path) is None and entry.module == module and main in entry.files.values():
                yield entry


def problem() -> str | None:
    """Return why the folder of modules that the user has executed cannot be used; None if it can.

    The reason is part of a sentence.
    """
    try:
        folder = _private_list_folder()
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            return f"{folder} cannot be read and written"
    except OSError as error:
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return None


def _private_list_folder() -> Path:
    """Return the folder of modules that the user has executed, created if missing.

    Raises `OSError` if other users own it or may write to it, or if it cannot be created.
    """
    folder = list_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if (why := distrusted(folder)) is not None:
        raise PermissionError(why)
    return folder


def read_regular(path: str | Path) -> bytes:
    """Return the content of a regular file of at most 16 MiB.

    Raises `OSError` for a file of another kind, a larger one, and one that is missing or unreadable.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            raise OSError(0, "not a regular file of at most 16 MiB", str(path))
        return file.read()


def hashes(content: Mapping[str, bytes], folder: str) -> dict[str, str]:
    """Return {path below the folder: SHA-256} of files.

    content  {absolute path: bytes of the file}
    """
    return {os.path.relpath(path, folder): sha256(data).hexdigest() for path, data in content.items()}
