"""A real Slurm on this machine: its own accounting of jobs that did all sorts of things, by the study's own command.

KEEP_SACCT_DUMPS=1 writes the dumps to tests/fixtures/sacct/.
"""

import os

import pytest
from one_machine_slurm import one_machine_slurm, why_not
from sacct_story import EXPECTED, FIELDS, FIXTURES, OTHER_FIELDS, check_story, dump, study, tell

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """Three dumps: one halfway, one at the end as the README says, one at the end with other columns and steps."""
    texts = {}
    with one_machine_slurm(GPUS="8", CPUS="16"):
        tell(lambda: texts.update(halfway=dump(FIELDS, "-X", "--noconvert")))
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
