"""The source distribution and the wheel: contents, installation, first command.

Shows:

* The source distribution is complete; its wheel works without the repository (test_packaging)
"""

import os
import subprocess
import sys
import tarfile
import zipfile

import pytest
from places import ROOT

from mccfr.config.examples import example_files


def build(what, source, out):
    """Build an archive of `source` with setuptools, offline; `what`: build_sdist or build_wheel."""
    out.mkdir()
    program = f"import setuptools.build_meta as b, sys; b.{what}(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, out], cwd=source, check=True, capture_output=True, text=True)
    return next(out.iterdir())


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """Return the source distribution, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("distributions")
    sdist = build("build_sdist", ROOT, folder / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "source")
    return sdist, build("build_wheel", next((folder / "source").iterdir()), folder / "wheel")


@pytest.fixture(scope="module")
def installed(distributions, tmp_path_factory):
    """Return a function that runs commands of a new environment with the wheel and its dependencies."""
    home = tmp_path_factory.mktemp("environment")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", home / "bin" / "python"]
    install = [*pip, "install", "--quiet", "--no-index", "--no-deps", "--no-compile", distributions[1]]
    subprocess.run(install, check=True, capture_output=True, text=True, env=environment)
    site = next((home / "lib").glob("python*")) / "site-packages"
    # Paths of .pth files come after the environment's own. Python ignores .pth files in them: no editable mccfr.
    (site / "dependencies.pth").write_text("".join(f"{path}\n" for path in sys.path if path.endswith("site-packages")))

    def run(where, program, *arguments, check=True):
        """Run a program. It uses the kernels that other tests compiled, since equal sources share them."""
        command = [home / "bin" / program, *arguments]
        return subprocess.run(command, cwd=where, check=check, capture_output=True, text=True, env=environment)

    return run


def test_the_archives_are_complete(distributions):
    sdist, wheel = distributions
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        wheel_files = set(archive.namelist())
        metadata = archive.read(next(name for name in wheel_files if name.endswith("/METADATA"))).decode()
    modules = {
        str(path.relative_to(ROOT)) for p in ("mccfr", "abstraction", "storage") for path in (ROOT / p).rglob("*.py")
    }
    for room in ("view/static", "play/data", "runs/data"):
        modules |= {f"mccfr/{room}/{path.name}" for path in (ROOT / "mccfr" / room).iterdir()}
    examples = {f"mccfr/examples/{name}" for name in example_files()}
    assert len(modules) > 100 and len(examples) > 10
    assert modules | examples <= wheel_files
    assert {name for name in wheel_files if ".dist-info/" not in name} == modules | examples | typed(wheel_files)
    assert any(name.endswith("licenses/LICENSE") for name in wheel_files)
    besides = {"LICENSE", "README.md", "CHANGELOG.md", "docs/commands.md", "tests/test_packaging.py", "tools/check"}
    assert modules | examples | besides | {f"runs/{name}" for name in example_files()} <= packed
    assert "License-Expression: Apache-2.0" in metadata and "Author: The mccfr developers" in metadata


def typed(names):
    """Return the `py.typed` files, which mark typed packages."""
    return {name for name in names if name.endswith("/py.typed")}


def test_the_first_commands_of_an_installed_wheel(installed, tmp_path):
    found = installed(tmp_path, "python", "-c", "import mccfr, storage; print(mccfr.__file__, storage.__file__)")
    assert str(ROOT) not in found.stdout
    assert "infosets     271,380" in installed(tmp_path, "mccfr", "plan", "hunl-quick", "--speed", "3e7").stdout
    assert not list(tmp_path.iterdir())
    solve = ["solve", "kuhn", "--workers", "0", "--iterations", "100"]
    printed = installed(tmp_path, "mccfr", *solve).stderr
    assert "copied the example to runs/kuhn.toml" in printed and "done: " in printed
    printed = installed(tmp_path, "mccfr", "solve", "hunl-quik", check=False).stderr
    assert printed.endswith("did you mean 'hunl-quick'?\n")


@pytest.mark.slow
def test_a_blueprint_from_an_installed_wheel(installed, tmp_path):
    printed = installed(tmp_path, "mccfr", "solve", "hunl-quick", "--nodes", "3e7").stderr
    assert "exported to runs/hunl-quick-policy" in printed and "checkpoint" in printed
    answer = installed(tmp_path, "mccfr", "query", "runs/hunl-quick-policy", "b300", "--hand", "AsAh").stdout
    assert "player 0 (big blind) to act on street preflop" in answer


@pytest.mark.parametrize("name", ["abstraction", "storage"])
def test_a_package_that_hides_one_of_mccfrs_is_named_in_one_sentence(installed, tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    failed = installed(tmp_path, "python", "-m", "mccfr", "games", check=False)
    assert failed.returncode == 1
    last = failed.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: mccfr needs its own package {name!r} in ")
    assert f"and finds the package in {tmp_path / name}: rename or move" in last
    assert "kuhn" in installed(tmp_path, "mccfr", "games").stdout  # the installed program does not look here
