"""The Slurm script of docs/server.md, run without Slurm.

Shows:

* Stopped jobs requeue themselves; a task of an array requeues alone
  (test_a_stopped_job_is_requeued_and_a_task_of_an_array_is_requeued_alone)
"""

import signal

import pytest
from sessions import wait_for
from slurm import slurm_job

ARRAY = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3"}
"""Variables of an array's last task; its SLURM_JOB_ID is also the ID of the whole array."""


@pytest.mark.parametrize(("array", "job"), [({}, "7"), (ARRAY, "7_3")], ids=["job", "array"])
@pytest.mark.parametrize("status", [75, 138])
def test_a_stopped_job_is_requeued_and_a_task_of_an_array_is_requeued_alone(tmp_path, array, job, status):
    assert slurm_job(tmp_path, "server.md", {"mccfr": f"exit {status}"}, **array).wait(60) == status
    assert (tmp_path / "requeued").read_text() == f"requeue {job}\n"


@pytest.mark.parametrize("status", [0, 1, 2, 137])
def test_an_ended_job_is_not_requeued(tmp_path, status):
    assert slurm_job(tmp_path, "server.md", {"mccfr": f"exit {status}"}).wait(60) == status
    assert not (tmp_path / "requeued").exists()


def test_the_script_passes_the_signal_on_and_waits_for_the_run(tmp_path):
    """The run ends one second after the signal, and the job returns its status."""
    program = """trap 'sleep 1; exit 75' USR1; touch ready; while :; do sleep 0.1; done"""
    process = slurm_job(tmp_path, "server.md", {"mccfr": program})
    wait_for((tmp_path / "ready").exists, 60)
    process.send_signal(signal.SIGUSR1)
    assert process.wait(60) == 75
    assert (tmp_path / "requeued").read_text() == "requeue 7\n"
