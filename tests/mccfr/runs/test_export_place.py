"""Export paths: an export replaces only exports of its own run, which is checked before training."""

import importlib.util
import json
from pathlib import Path

import pytest
import tomli_w
from commands import call, refusal
from refusals import refused
from same import files_of
from sessions import NO_EVALUATION, make, trained

import mccfr
from mccfr.cli import cluster_commands
from mccfr.config.run_tables import ExportConfig
from mccfr.policy import Policy
from mccfr.policy.export import FORMATS, PROVENANCE
from mccfr.policy.overwrite import replaceable
from mccfr.runs.directory.run import open_run
from mccfr.runs.results.export_place import export_path
from mccfr.runs.results.run_export import ExportOptions, export_run
from storage.atomic_outputs import output

DOCUMENT = {
    "game": {"name": "kuhn"},
    "solver": {"algorithm": "cfr"},
    "run": {"workers": 0, "iterations": 5},
    "evaluation": NO_EVALUATION,
}
TO_POLICY = {**DOCUMENT, "export": {"out": "policy"}}
NEEDED = {"parquet": "pyarrow", "openspiel": "pyspiel"}


@pytest.fixture(autouse=True)
def current_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config(**export):
    path = Path("kuhn.toml")
    path.write_text(tomli_w.dumps({**DOCUMENT, "export": export}))
    return path


def run_id_in(policy):
    return Policy.open(Path(policy)).meta["provenance"]["run_id"]


def run_id_of(run):
    return open_run(Path(run)).run_id


def test_solve_refuses_to_overwrite_another_runs_policy_before_training(capsys):
    """A run of the same configuration in another directory is another run."""
    file = config(out="policy")
    assert call(capsys, "solve", file, "--run", "one").status == 0
    before = files_of(Path("policy"))
    ended = call(capsys, "solve", file, "--run", "two")
    assert ended.status == 2 and ended.err.count("\n") == 1
    assert "mccfr: policy is an export of another run" in ended.err
    assert "--replace" in ended.err and "another out" in ended.err
    assert not Path("two").exists() and files_of(Path("policy")) == before
    assert call(capsys, "solve", file, "--run", "two", "--replace").status == 0
    assert run_id_in("policy") == run_id_of("two")


def test_resume_and_solve_of_a_run_that_is_there_refuse_before_training(capsys):
    file = config(out="policy")
    for run in ("one", "two"):
        assert call(capsys, "solve", file, "--run", run, "--replace").status == 0
    before = files_of(Path())
    for command in (("resume", "one"), ("solve", file, "--run", "one")):
        assert "another run" in refusal(capsys, *command, "--iterations", 9)
        assert files_of(Path()) == before
    assert call(capsys, "resume", "two", "--iterations", 9).status == 0  # the run of this policy
    assert call(capsys, "resume", "one", "--iterations", 9, "--replace").status == 0
    assert run_id_in("policy") == run_id_of("one")


def test_a_file_that_is_no_export_at_the_export_path_is_refused_before_training(capsys):
    Path("letter").write_text("dear")
    assert "not an earlier output" in refusal(capsys, "solve", config(out="letter"), "--run", "one", "--replace")
    assert not Path("one").exists() and Path("letter").read_text() == "dear"


def test_a_policy_lies_beside_its_run_by_default(capsys):
    for run in ("kuhn", "deep/other"):
        assert call(capsys, "solve", config(), "--run", run).status == 0
        assert run_id_in(f"{run}-policy") == run_id_of(run)
    assert call(capsys, "resume", "kuhn", "--iterations", 8).status == 0
    assert Policy.open(Path("kuhn-policy")).meta["provenance"]["iterations"] == 8
    Path("deep/other").rename("moved")
    assert call(capsys, "resume", "moved").status == 0 and Policy.open(Path("moved-policy"))


def test_the_default_export_path_of_a_relative_run_path_is_beside_the_run(current_directory, monkeypatch):
    (current_directory / "runs/one").mkdir(parents=True)
    monkeypatch.chdir(current_directory / "runs/one")
    assert export_path(ExportConfig(), Path()) == current_directory / "runs/one-policy"
    assert export_path(ExportConfig(), Path("..")) == current_directory / "runs-policy"


def test_the_command_refuses_another_runs_export_of_any_format(capsys):
    """The same run replaces an export that has provenance; CSV has none."""
    for run in ("one", "two"):
        trained(make(Path(run), {"algorithm": "cfr"}, "kuhn"), iterations=3)
    tried = [form for form in FORMATS if importlib.util.find_spec(NEEDED.get(form, "json"))]
    assert len(tried) >= 4
    for form in tried:
        out = Path(f"out.{form}")
        assert call(capsys, "export", "one", out, "--format", form).status == 0
        before = files_of(out) or out.read_bytes()
        ended = call(capsys, "export", "two", out, "--format", form)
        assert ended.status == 2 and "another run" in ended.err and "--replace" in ended.err, form
        assert (files_of(out) or out.read_bytes()) == before
        assert call(capsys, "export", "one", out, "--format", form).status == (2 if form == "csv" else 0), form
        assert call(capsys, "export", "two", out, "--format", form, "--replace").status == 0
        assert PROVENANCE[form](out).get("run_id") == (None if form == "csv" else run_id_of("two")), form


def test_a_foreign_zarr_group_with_a_description_has_no_provenance():
    Path("theirs").mkdir()
    Path("theirs/zarr.json").write_text('{"node_type": "group", "attributes": {"description": "fields of wheat"}}')
    assert PROVENANCE["zarr"](Path("theirs")) is None


def test_a_policy_without_a_run_id_is_replaced_only_with_replace():
    run = trained(make(Path("one"), {"algorithm": "cfr"}, "kuhn"), iterations=3)
    export_run(run, run.build_game(), Path("policy"))
    meta = Path("policy/meta.json")
    document = json.loads(meta.read_text())
    del document["provenance"]["run_id"]
    meta.write_text(json.dumps(document))
    arguments = run, run.build_game(), Path("policy")
    refused("does not say of which: give --replace", export_run, *arguments, error=FileExistsError)
    export_run(*arguments, ExportOptions(replace=True))


def test_python_refuses_to_replace_another_runs_export():
    one = mccfr.solve(TO_POLICY, run="one")
    refused("another run", mccfr.solve, TO_POLICY, run="two", error=FileExistsError)
    assert not Path("two").exists()
    two = mccfr.solve(DOCUMENT, run="two")
    refused("replace=True", two.export, "policy", error=FileExistsError)
    assert one.export("policy") == two.export("policy", replace=True)
    refused("another run", mccfr.resume, one, iterations=9, error=FileExistsError)
    assert mccfr.resume(one, iterations=9, replace=True).status()["iterations"] == 9
    solver, other = (mccfr.solver(mccfr.game("kuhn"), "cfr") for _ in range(2))
    for each in (solver, other):
        each.run(iterations=1)
    for _ in range(2):
        solver.save("saved")
    refused("another run", other.save, "saved", error=FileExistsError)
    other.save("saved", replace=True)


def test_an_export_without_run_id_does_not_replace_another_one_without():
    refused("another run", replaceable(lambda _: {}, None, replace=False), Path("out"), error=FileExistsError)
    assert replaceable(lambda _: {}, None, replace=True)(Path("out"))


def test_ranks_receive_the_replace_option():
    limits = dict.fromkeys(("nodes", "iterations", "seconds", "workers"))
    assert cluster_commands._arguments({**limits, "force": False, "replace": True}) == ["--replace"]


def test_a_file_created_at_the_path_during_an_export_is_kept(current_directory):
    out = current_directory / "out"
    with pytest.raises(FileExistsError, match="not an earlier output"), output(out, lambda path: False) as temporary:
        temporary.write_text("ours")
        out.write_text("theirs")
    assert out.read_text() == "theirs" and [path.name for path in current_directory.iterdir()] == ["out"]
