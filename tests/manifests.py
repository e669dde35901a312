"""Changes manifests and files: valid manifests with other content, flipped bits."""

import json

from storage import durable
from storage.manifest import content_hash, exact_json


def flip(path, place=None):
    """Flip a bit of a file, by default in its middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if place is None else place] ^= 4
    path.write_bytes(data)


def entry_of(file, kind):
    """Return the manifest entry of a file's present content, with a checksum of the kind."""
    length, checksum = durable.checksum_file(file, kind)
    return {"length_bytes": length, kind: checksum}


def forge_document(path, change):
    """Rewrite a manifest with its content changed by `change`, and with the right checksum."""
    content = json.loads(path.read_bytes())
    del content["content_hash"]
    change(content)
    content["content_hash"] = content_hash(content)
    path.write_bytes(exact_json(content, "manifest"))


def rewrite(path, document):
    """Write a document with right checksums, if its kind has any."""
    if path.name == "state.json" or not isinstance(document, dict):
        path.write_text(json.dumps(document))
        if path.name == "state.json":
            forge(path.parent)
    else:
        path.write_text(json.dumps({**document, "content_hash": ""}))
        forge_document(path, lambda content: None)


def forge(path, change=lambda content: None, name="manifest.json"):
    """Rewrite a directory's manifest for its present files, with its content changed by `change`."""

    def stated(content):
        for file, entry in content["files"].items():
            if (path / file).is_file():
                (kind,) = entry.keys() - {"length_bytes"}
                content["files"][file] = entry_of(path / file, kind)
        change(content)

    forge_document(path / name, stated)
