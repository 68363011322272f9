"""Accounting of varied jobs by a real Slurm on this machine, dumped with the study's own command.

KEEP_SACCT_DUMPS=1 writes the dumps to tests/fixtures/sacct/.
"""

import os

import pytest
from one_machine_slurm import missing_requirements, one_machine_slurm
from sacct_story import EXPECTED, FIELDS, FIXTURES, OTHER_FIELDS, check_story, derive_tables, dump, run_story

pytestmark = pytest.mark.skipif(bool(missing_requirements()), reason=missing_requirements())


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """Return three dumps: one halfway, one with the README's command, one with other columns and steps."""
    texts = {}
    with one_machine_slurm(GPUS="8", CPUS="16"):
        run_story(lambda: texts.update(halfway=dump(FIELDS, "-X", "--noconvert")))
        texts["readme"] = dump(FIELDS, "-X", "--noconvert")
        texts["steps"] = dump(OTHER_FIELDS, times=None)
    target = FIXTURES if os.environ.get("KEEP_SACCT_DUMPS") else tmp_path_factory.mktemp("dumps")
    target.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, text in texts.items():
        files[name] = target / f"real_{name}.txt"
        files[name].write_text(text)
    return files


def test_the_readme_command(dumps, tmp_path):
    account, jobs, attempts = derive_tables(dumps["readme"], folder=tmp_path)
    assert account["rows_quarantined"].item() == 0
    assert jobs.height == len(EXPECTED)
    check_story(jobs, attempts)


def test_other_columns_and_steps(dumps, tmp_path):
    account, jobs, attempts = derive_tables(dumps["steps"], folder=tmp_path)
    assert account["rows_accepted"].item() > jobs.height + 10
    check_story(jobs, attempts)


def test_dumps_that_overlap(dumps, tmp_path):
    account, jobs, attempts = derive_tables(*dumps.values(), folder=tmp_path)
    assert account["rows_read"].item() > jobs.height == len(EXPECTED), "each job is once among the jobs"
    check_story(jobs, attempts)
