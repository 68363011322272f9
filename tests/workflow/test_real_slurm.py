"""A real Slurm on this machine: its own accounting of jobs that did all sorts of things, by the study's own command.

Needs root, the packages of `make test-tools`, and the scripts that start one (../shared/tools/one-machine-slurm).
KEEP_SACCT_DUMPS=1 writes the dumps to tests/fixtures/sacct/.
"""

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
from sacct_story import EXPECTED, FIELDS, FIXTURES, OTHER_FIELDS, check_story, dump, study, tell

TOOLS = Path(__file__).resolve().parents[3] / "shared" / "tools" / "one-machine-slurm"
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


def end_all_jobs() -> None:
    """Cancel what still runs in the Slurm of these tests: its daemons would leave the jobs behind."""
    if subprocess.run(["scancel", "-u", "root"], capture_output=True, timeout=60, check=False).returncode:
        return
    for _ in range(50):
        left = subprocess.run(["squeue", "-h"], capture_output=True, timeout=60, check=False)
        if left.returncode or not left.stdout.strip():
            return
        time.sleep(0.2)


pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """Three dumps: one halfway, one at the end as the README says, one at the end with other columns and steps."""
    # Of root and pytest, nobody else may enter: the database and Slurm run as users of their own.
    folder = Path(tempfile.mkdtemp(prefix="ttf_slurm_"))
    folder.chmod(0o755)
    texts = {}
    with (folder / "up.log").open("w") as log:
        env = os.environ | {"GPUS": "8", "CPUS": "16"}
        try:
            started = subprocess.run(
                [TOOLS / "up.sh", folder], env=env, stdout=log, stderr=log, timeout=60, stdin=subprocess.DEVNULL
            )
            assert started.returncode == 0, (folder / "up.log").read_text()
            tell(lambda: texts.update(halfway=dump(FIELDS, "-X", "--noconvert")))
            texts["readme"] = dump(FIELDS, "-X", "--noconvert")
            texts["steps"] = dump(OTHER_FIELDS, times=None)
        finally:
            with suppress(subprocess.TimeoutExpired):
                end_all_jobs()
            subprocess.run([TOOLS / "down.sh", folder], stdout=log, stderr=log, timeout=60, check=False)
            for link in CONFIGURATION:
                if link.is_symlink():
                    link.unlink()
            shutil.rmtree(folder, ignore_errors=True)
    target = FIXTURES if os.environ.get("KEEP_SACCT_DUMPS") else tmp_path_factory.mktemp("dumps")
    target.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, text in texts.items():
        files[name] = target / f"real_{name}.txt"
        files[name].write_text(text)
    return files


def test_the_readme_command(dumps, tmp_path):
    account, jobs, attempts = study(dumps["readme"], folder=tmp_path)
    assert account["rows_quarantined"].item() == 0
    assert jobs.height == len(EXPECTED)
    check_story(jobs, attempts)


def test_other_columns_and_steps(dumps, tmp_path):
    account, jobs, attempts = study(dumps["steps"], folder=tmp_path)
    assert account["rows_kept"].item() > jobs.height + 10
    check_story(jobs, attempts)


def test_dumps_that_overlap(dumps, tmp_path):
    check_story(*study(*dumps.values(), folder=tmp_path)[1:])
