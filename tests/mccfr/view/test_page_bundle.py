"""The bundle of the page that the wheel contains.

Shows:

* The served bundle is made from its source, with licences
  (test_the_bundle_is_built_from_its_source, test_licences_of_the_libraries_are_in_the_bundle)
"""

import hashlib
import json
import re

from places import ROOT

PAGE, STATIC = ROOT / "mccfr/view/page", ROOT / "mccfr/view/static"
MOST_LINES = 2_500


def sources():
    """Files of the page's source, without what npm installs."""
    return [path for path in PAGE.rglob("*") if path.is_file() and "node_modules" not in path.parts]


def test_the_bundle_is_built_from_its_source():
    """Each file of source and bundle has the checksum that tools/page wrote; after a change, run it again."""
    lines = (line.split("  ") for line in (STATIC / "sources.sha256").read_text().splitlines())
    written = {(STATIC / name).resolve(): checksum for checksum, name in lines}
    bundle = [path for path in STATIC.iterdir() if path.name != "sources.sha256"]
    found = {path.resolve(): hashlib.sha256(path.read_bytes()).hexdigest() for path in (*sources(), *bundle)}
    assert found == written, "run tools/page and commit its result"


def test_licences_of_the_libraries_are_in_the_bundle():
    packages = json.loads((PAGE / "package-lock.json").read_text())["packages"]
    bundled = [name for name in packages if name and "esbuild" not in name]
    text = (STATIC / "LICENSES.txt").read_text()
    assert len(bundled) == 4
    for name in bundled:
        assert f"{name.removeprefix('node_modules/')} {packages[name]['version']}, MIT" in text
    assert text.count("Permission is hereby granted") == len(bundled)


def test_the_page_is_small():
    """Count the lines of the page's own JavaScript, without blank lines and comments."""
    texts = [path.read_text() for path in sources() if path.parent.name == "src" and path.suffix in (".js", ".jsx")]
    code = [
        line for text in texts for line in re.sub(r"(?m)^ *(/\*.*?\*/|//[^\n]*)$", "", text, flags=re.S).split("\n")
    ]
    assert sum(bool(line.strip()) for line in code) <= MOST_LINES


def test_the_lock_file_names_no_registry():
    assert '"resolved"' not in (PAGE / "package-lock.json").read_text()
