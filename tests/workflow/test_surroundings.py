"""No product depends on the machine that made it: locale, zone, threads, order of hashes, permissions, fonts."""

from study_runs import SMALL
from whole_study import run_apart

# Of Snakemake alone.
NOT_COMPARED = ("manifest.json", ".snakemake_timestamp")


def test_the_same_bytes_in_other_surroundings_and_without_snakemake(finished_study, tmp_path):
    made = {name: of for name, of in finished_study.hashes().items() if not name.endswith(NOT_COMPARED)}
    again = run_apart(SMALL, tmp_path, 2, LC_ALL="C", TZ="Asia/Kathmandu", PYTHONHASHSEED="7", PYTHONUTF8="0")
    assert again.ok, again
    assert {name for name in made.keys() | again.hashes.keys() if made.get(name) != again.hashes.get(name)} == set()
