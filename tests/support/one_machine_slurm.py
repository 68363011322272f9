"""Run a real Slurm on this machine for the duration of some tests.

Requires root, the packages of `make test-tools`, and the start scripts (../shared/tools/one-machine-slurm).
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[3] / "shared" / "tools" / "one-machine-slurm"
# Each wait takes seconds on an idle machine and longer on a busy one.
PATIENCE_S = 300
CONFIGURATION = [Path("/etc/slurm") / name for name in ("slurm.conf", "slurmdbd.conf", "gres.conf")]


def missing_requirements() -> str:
    """Return what is missing to start a Slurm, or an empty string."""
    missing = [name for name in ("slurmctld", "slurmdbd", "sacct", "mariadbd", "munged") if not shutil.which(name)]
    if missing:
        return f"not installed: {', '.join(missing)} (make test-tools)"
    if os.geteuid() != 0:
        return "starting Slurm takes root"
    if not TOOLS.is_dir():
        return "../shared/tools/one-machine-slurm is not beside the checkout"
    # up.sh creates these links and must never replace existing files.
    if any(link.exists() for link in CONFIGURATION):
        return "this machine has a Slurm configuration of its own in /etc/slurm"
    return ""


@contextlib.contextmanager
def one_machine_slurm(**settings: str) -> Iterator[Path]:
    """Yield the folder of a running Slurm of two nodes; `settings` are the variables of up.sh."""
    # Only root can enter pytest's folder, but the database and Slurm run as other users.
    folder = Path(tempfile.mkdtemp(prefix="ttf_slurm_"))
    folder.chmod(0o755)
    with (folder / "up.log").open("w") as log:
        try:
            startup = subprocess.run(
                [TOOLS / "up.sh", folder],
                env=os.environ | settings,
                stdout=log,
                stderr=log,
                timeout=PATIENCE_S,
                stdin=subprocess.DEVNULL,
            )
            assert startup.returncode == 0, (folder / "up.log").read_text()
            yield folder
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):
                end_all_jobs()
            subprocess.run([TOOLS / "down.sh", folder], stdout=log, stderr=log, timeout=PATIENCE_S, check=False)
            for link in CONFIGURATION:
                if link.is_symlink():
                    link.unlink()
            shutil.rmtree(folder, ignore_errors=True)


def end_all_jobs() -> None:
    """Cancel all running jobs: stopping the daemons would leave their processes behind."""
    if subprocess.run(["scancel", "-u", "root"], capture_output=True, timeout=PATIENCE_S, check=False).returncode:
        return
    for _ in range(150):
        queue = subprocess.run(["squeue", "-h"], capture_output=True, timeout=PATIENCE_S, check=False)
        if queue.returncode or not queue.stdout.strip():
            return
        time.sleep(0.2)


@dataclass(frozen=True)
class Slurm:
    """Slurm of these tests; `folder` holds its configuration, logs and pid files."""

    folder: Path

    def __call__(self, *command: str) -> str:
        process = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert process.returncode == 0, f"{' '.join(command)}: {process.stderr}"
        return process.stdout

    def jobs(self, state: str, last_id: int = 0) -> list[int]:
        return sorted(int(job) for job in self("squeue", "-h", "-t", state, "-o", "%A").split() if int(job) > last_id)

    def last_job(self) -> int:
        """Return the id of the last job; the accounting learns of it late, the controller forgets it later."""
        job_ids = self("squeue", "-h", "-t", "all", "-o", "%A") + self("sacct", "-n", "-X", "-o", "JobIDRaw")
        return max(map(int, job_ids.split()), default=0)

    def states(self, last_id: int) -> list[str]:
        """Return the final states of the jobs with ids above `last_id`."""
        rows = [row.split("|") for row in self("sacct", "-n", "-X", "-P", "-o", "JobIDRaw,State").splitlines()]
        return [state.split()[0] for job, state in rows if int(job) > last_id]

    def stop_controller(self) -> None:
        pid = int((self.folder / "run" / "slurmctld.pid").read_text())
        self("kill", str(pid))
        wait_until(lambda: not Path(f"/proc/{pid}").exists())

    def start_controller(self) -> None:
        self("setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups", "slurmctld")
        wait_until(lambda: "UP" in subprocess.run(["scontrol", "ping"], capture_output=True, text=True).stdout)

    def restart_node(self, node: str) -> None:
        pid = int((self.folder / "run" / f"slurmd.{node}.pid").read_text())
        self("kill", str(pid))
        wait_until(lambda: not Path(f"/proc/{pid}").exists())
        self("slurmd", "-N", node)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
