"""A real Slurm on this machine, for as long as some tests need it.

Needs root, the packages of `make test-tools`, and the scripts that start one (../shared/tools/one-machine-slurm).
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

TOOLS = Path(__file__).resolve().parents[2] / "shared" / "tools" / "one-machine-slurm"
# What is waited for takes seconds on an idle machine; a busy one may take its time.
PATIENCE_S = 300
CONFIGURATION = [Path("/etc/slurm") / name for name in ("slurm.conf", "slurmdbd.conf", "gres.conf")]


def why_not() -> str:
    """What is missing for a Slurm of one's own; empty if nothing is."""
    missing = [name for name in ("slurmctld", "slurmdbd", "sacct", "mariadbd", "munged") if not shutil.which(name)]
    if missing:
        return f"not installed: {', '.join(missing)} (make test-tools)"
    if os.geteuid() != 0:
        return "starting Slurm takes root"
    if not TOOLS.is_dir():
        return "../shared/tools/one-machine-slurm is not beside the checkout"
    # up.sh links these to its own: never in place of somebody's.
    if any(link.exists() for link in CONFIGURATION):
        return "this machine has a Slurm configuration of its own in /etc/slurm"
    return ""


@contextlib.contextmanager
def one_machine_slurm(**settings: str) -> Iterator[Path]:
    """The folder of a Slurm of two nodes that runs until the end; `settings` are the variables of up.sh."""
    # Of root and pytest, nobody else may enter: the database and Slurm run as users of their own.
    folder = Path(tempfile.mkdtemp(prefix="ttf_slurm_"))
    folder.chmod(0o755)
    with (folder / "up.log").open("w") as log:
        try:
            started = subprocess.run(
                [TOOLS / "up.sh", folder],
                env=os.environ | settings,
                stdout=log,
                stderr=log,
                timeout=PATIENCE_S,
                stdin=subprocess.DEVNULL,
            )
            assert started.returncode == 0, (folder / "up.log").read_text()
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
    """Cancel what still runs in the Slurm of these tests: its daemons would leave the jobs behind."""
    if subprocess.run(["scancel", "-u", "root"], capture_output=True, timeout=PATIENCE_S, check=False).returncode:
        return
    for _ in range(150):
        left = subprocess.run(["squeue", "-h"], capture_output=True, timeout=PATIENCE_S, check=False)
        if left.returncode or not left.stdout.strip():
            return
        time.sleep(0.2)


@dataclass(frozen=True)
class Slurm:
    """The Slurm of these tests, whose configuration, logs and pid files are in `folder`."""

    folder: Path

    def __call__(self, *command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def jobs(self, state: str, after: int = 0) -> list[int]:
        """The ids of jobs in this state (PENDING, RUNNING) that were submitted after another, in order."""
        return sorted(int(job) for job in self("squeue", "-h", "-t", state, "-o", "%A").split() if int(job) > after)

    def last_job(self) -> int:
        """The id of the job submitted last: the accounting learns of it late, the controller forgets it in time."""
        known = self("squeue", "-h", "-t", "all", "-o", "%A") + self("sacct", "-n", "-X", "-o", "JobIDRaw")
        return max(map(int, known.split()), default=0)

    def states(self, after: int) -> list[str]:
        """How the jobs submitted after another ended."""
        rows = [row.split("|") for row in self("sacct", "-n", "-X", "-P", "-o", "JobIDRaw,State").splitlines()]
        return [state.split()[0] for job, state in rows if int(job) > after]

    def stop_controller(self) -> None:
        pid = int((self.folder / "run" / "slurmctld.pid").read_text())
        self("kill", str(pid))
        until(lambda: not Path(f"/proc/{pid}").exists())

    def start_controller(self) -> None:
        self("setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups", "slurmctld")
        until(lambda: "UP" in subprocess.run(["scontrol", "ping"], capture_output=True, text=True).stdout)

    def restart_node(self, node: str) -> None:
        pid = int((self.folder / "run" / f"slurmd.{node}.pid").read_text())
        self("kill", str(pid))
        until(lambda: not Path(f"/proc/{pid}").exists())
        self("slurmd", "-N", node)


def until(true: Callable[[], bool]) -> None:
    """Wait until it is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
