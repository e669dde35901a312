"""Runs the Slurm scripts of documentation pages without Slurm."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from places import ROOT

MCCFR = f'exec {sys.executable} -m mccfr "$@"'


def slurm_job(folder: Path, page: str, programs: Mapping[str, str], **environment: str) -> subprocess.Popen[bytes]:
    """Start a page's script in a folder; lines of bash replace its programs.

    `scontrol` writes its arguments into the file `requeued`.
    """
    script = re.search(r"```(?:bash)?\n(#!/bin/bash\n#SBATCH.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    assert script is not None
    (folder / "job.sh").write_text(script[1])
    shims = folder / "bin"
    shims.mkdir()
    for name, line in {"scontrol": 'echo "$@" >> requeued', **programs}.items():
        (shims / name).write_text(f"#!/bin/bash\n{line}\n")
        (shims / name).chmod(0o755)
    path = {"PATH": f"{shims}:{os.environ['PATH']}", "SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "1"}
    return subprocess.Popen(["bash", "job.sh"], cwd=folder, env=os.environ | path | environment)
