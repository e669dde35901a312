"""Rebuilds, from recorded durable operations, the states that a crash may leave on a disk that keeps no promise.

The model: a file's content is certain after its fsync, an entry of a directory (created, renamed, removed) after the
fsync of that directory.  Whatever is not certain may have happened or not, each on its own, whatever the order.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from storage.durable import Operation

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
    """The tree on the disk, all of it certain."""
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


def _apply(tree: Directory, base: Path, operation: Operation, happened: bool) -> None:
    """Apply one step.  `happened` False: the name it makes, moves or removes has not reached the disk."""
    parts = operation.path.relative_to(base).parts
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
            target = operation.target.relative_to(base).parts
            _find(tree, target[:-1]).entries[target[-1]] = parent.entries.pop(name)
        case "exchange" if node is not None and happened:
            target = operation.target.relative_to(base).parts
            other = _find(tree, target[:-1]).entries
            other[target[-1]], parent.entries[name] = node, other[target[-1]]
        case "link" if node is not None and happened:
            target = operation.target.relative_to(base).parts
            _find(tree, target[:-1]).entries[target[-1]] = node
        case "truncate" if isinstance(node, File):
            node.current = node.current[: operation.length]
        case "remove_file" if happened and isinstance(node, File):
            del parent.entries[name]
        case "remove_dir" if happened and isinstance(node, Directory) and not node.entries:
            del parent.entries[name]


def _uncertain_names(operations: list[Operation]) -> list[int]:
    """Positions of the operations on names whose directory has not been fsynced since."""
    uncertain, written = [], set()
    for position, operation in enumerate(operations):
        if operation.kind in ("fsync_file", "fsync_dir", "truncate"):
            continue
        if operation.kind in ("write_file", "append"):
            if operation.path in written:
                continue  # only the first one makes the name
            written.add(operation.path)
        later = operations[position + 1 :]
        if not any(other.kind == "fsync_dir" and other.path == operation.path.parent for other in later):
            uncertain.append(position)
    return uncertain


def _flatten(tree: Directory, mode: str, only: str | None = None, prefix: str = "") -> dict[str, bytes | None]:
    """{path: content, None for a directory}; with `only`, the mode holds for that file and the rest is full."""
    flat: dict[str, bytes | None] = {}
    for name, node in tree.entries.items():
        path = prefix + name
        if isinstance(node, Directory):
            flat[path] = None
            flat.update(_flatten(node, mode, only, path + "/"))
        else:
            flat[path] = node.content(mode if only in (None, path) else "full")
    return flat


def states_after(before: Directory, base: Path, operations: list[Operation]) -> Iterator[dict[str, bytes | None]]:
    """Every state of the model that a crash after these operations may leave (see the choices below).

    Uncertain names: all happened, none, all but one, only one.  Uncertain contents: all full, lost, cut to half or
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
        for mode in CONTENT_MODES:
            yield _flatten(tree, mode)
        if not missing:
            for path in [path for path, content in _flatten(tree, "full").items() if content is not None]:
                for mode in CONTENT_MODES[1:]:
                    yield _flatten(tree, mode, path)


def write(state: dict[str, bytes | None], target: Path) -> None:
    """Write a state to the disk; `target` is absent or empty."""
    target.mkdir(parents=True, exist_ok=True)
    for path, content in state.items():
        if content is None:
            (target / path).mkdir()
        else:
            (target / path).write_bytes(content)
