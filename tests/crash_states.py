"""Rebuilds the disk states that a crash may leave, from recorded durable operations.

In the model a file's content is certain after its fsync. An entry of a directory (created, renamed, removed) is certain
after the fsync of that directory. Anything else may have happened or not, independently and in any order.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from storage.durable import TEMPORARY_PREFIX, Operation

CONTENT_MODES = ("full", "lost", "half", "zeros")


@dataclass
class File:
    current: bytes
    certain: bytes | None = None  # None: never fsynced

    def content(self, mode: str) -> bytes:
        base = self.certain or b""
        if mode == "full" or self.certain == self.current:
            return self.current
        if mode == "lost":
            return base
        kept = len(base) if self.current.startswith(base) else 0
        new = self.current[kept:]
        return self.current[:kept] + (new[: len(new) // 2] if mode == "half" else bytes(len(new)))


@dataclass
class Directory:
    entries: dict[str, "File | Directory"] = field(default_factory=dict)


def load(path: Path) -> Directory:
    """Return the tree on the disk, with every file durable."""
    tree = Directory()
    for entry in path.iterdir():
        if entry.is_dir():
            tree.entries[entry.name] = load(entry)
        else:
            tree.entries[entry.name] = File(entry.read_bytes(), entry.read_bytes())
    return tree


def _copy(tree: Directory) -> Directory:
    return Directory(
        {
            name: _copy(node) if isinstance(node, Directory) else File(node.current, node.certain)
            for name, node in tree.entries.items()
        }
    )


def _find(tree: Directory, parts: tuple[str, ...]) -> "File | Directory | None":
    node: File | Directory | None = tree
    for part in parts:
        node = node.entries.get(part) if isinstance(node, Directory) else None
    return node


@cache
def _parts(path: Path, base: Path) -> tuple[str, ...]:
    return path.relative_to(base).parts


def _apply(tree: Directory, base: Path, operation: Operation, happened: bool) -> None:
    """Apply one step.  `happened` False: the change of a directory entry has not reached the disk."""
    parts = _parts(operation.path, base)
    parent, name = _find(tree, parts[:-1]), parts[-1] if parts else ""
    if operation.kind == "fsync_dir" or not isinstance(parent, Directory):
        return
    node = parent.entries.get(name)
    match operation.kind:
        case "make_dir" if node is None and happened:
            parent.entries[name] = Directory()
        case "write_file" if isinstance(node, File):
            node.current = operation.data
        case "write_file" if happened:
            parent.entries[name] = File(operation.data)
        case "append" if isinstance(node, File):
            node.current += operation.data
        case "append" if happened:
            parent.entries[name] = File(operation.data)
        case "fsync_file" if isinstance(node, File):
            node.certain = node.current
        case "rename" if node is not None and happened:
            target = _parts(operation.target, base)
            _find(tree, target[:-1]).entries[target[-1]] = parent.entries.pop(name)
        case "exchange" if node is not None and happened:
            target = _parts(operation.target, base)
            other = _find(tree, target[:-1]).entries
            other[target[-1]], parent.entries[name] = node, other[target[-1]]
        case "truncate" if isinstance(node, File):
            node.current = node.current[: operation.length]
        case "remove_file" if happened and isinstance(node, File):
            del parent.entries[name]
        case "remove_dir" if happened and isinstance(node, Directory) and not node.entries:
            del parent.entries[name]


def _uncertain_names(operations: list[Operation]) -> list[int]:
    """Return positions of operations on names whose directory was not fsynced afterwards."""
    made: dict[Path, int] = {}
    for position, operation in enumerate(operations):
        if operation.kind in ("write_file", "append"):
            made.setdefault(operation.path, position)  # only the first one creates the name
    uncertain, synced = [], set()
    for position, operation in reversed(list(enumerate(operations))):
        if operation.kind == "fsync_dir":
            synced.add(operation.path)
        elif operation.kind in ("fsync_file", "truncate") or operation.path.parent in synced:
            continue
        elif operation.kind not in ("write_file", "append") or made[operation.path] == position:
            uncertain.append(position)
    return uncertain[::-1]


def _nodes(tree: Directory, prefix: str = "") -> dict[str, File | Directory]:
    """Return all nodes of a tree by path."""
    flat: dict[str, File | Directory] = {}
    for name, node in tree.entries.items():
        flat[prefix + name] = node
        if isinstance(node, Directory):
            flat.update(_nodes(node, f"{prefix}{name}/"))
    return flat


def states_after(before: Directory, base: Path, operations: list[Operation]) -> Iterator[dict[str, bytes | None]]:
    """Yield every state of the model after a crash: {path: content, None for a directory}.

    Uncertain names: all happened, none, all but one, only one. Uncertain contents: all full, lost, cut to half or
    zeroed, and one file alone damaged in each way while the others are full.
    """
    uncertain = _uncertain_names(operations)
    choices = {frozenset(), frozenset(uncertain)}
    choices.update(frozenset([one]) for one in uncertain)
    choices.update(frozenset(uncertain) - {one} for one in uncertain)
    for missing in choices:
        tree = _copy(before)
        for position, operation in enumerate(operations):
            _apply(tree, base, operation, position not in missing)
        nodes = _nodes(tree)
        files = {path: node for path, node in nodes.items() if isinstance(node, File)}
        states = [
            dict.fromkeys(nodes) | {path: file.content(mode) for path, file in files.items()} for mode in CONTENT_MODES
        ]
        yield from states
        for path, file in files.items() if not missing else ():
            if file.certain != file.current:
                for mode in CONTENT_MODES[1:]:
                    yield states[0] | {path: file.content(mode)}


def write(state: dict[str, bytes | None], target: Path) -> None:
    """Write a state to the disk; `target` is absent or empty."""
    target.mkdir(parents=True, exist_ok=True)
    for path, content in state.items():
        if content is None:
            (target / path).mkdir()
        else:
            (target / path).write_bytes(content)


def unsynced(operations: list[Operation], there: set[Path]) -> list[str]:
    """Return files that a power cut may lose although they have or will get their final names.

    there  files on the disk before the first operation
    """
    found = set()
    for position, operation in enumerate(operations):
        if operation.kind in ("rename", "exchange") and not _is_temporary(operation.target):
            before = operations[:position]
            found |= {path for path in _not_certain(before, there) if path.is_relative_to(operation.path)}
            found -= {operation.path} - _not_certain_content(before)
    found |= {path for path in _not_certain(operations, there) if not _is_temporary(path)}
    return sorted(map(str, found))


def _is_temporary(path: Path) -> bool:
    return any(part.startswith(TEMPORARY_PREFIX) for part in path.parts)


def _not_certain(operations: list[Operation], there: set[Path]) -> set[Path]:
    """Return the paths whose name or content a crash may lose, by the name at that time."""
    names = [operations[position] for position in _uncertain_names(operations)]
    made = ("write_file", "append")
    return _not_certain_content(operations) | {
        operation.target or operation.path
        for operation in names
        if operation.kind not in made or operation.path not in there
    }


def _not_certain_content(operations: list[Operation]) -> set[Path]:
    """Return files that were written after their last fsync."""
    open_files: set[Path] = set()
    for operation in operations:
        if operation.kind in ("write_file", "append", "truncate"):
            open_files.add(operation.path)
        elif operation.kind in ("fsync_file", "remove_file"):
            open_files.discard(operation.path)
    return open_files
