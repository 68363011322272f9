"""No product depends on the machine that made it: locale, zone, threads, order of hashes, permissions, fonts."""

from study_runs import SMALL
from surroundings import surroundings
from whole_study import run_apart

# Of Snakemake alone; the first two have digests of the code, which only the rules know.
NOT_COMPARED = ("manifest.json", "model_cache.parquet", ".snakemake_timestamp")


def test_the_same_bytes_in_other_surroundings_and_without_snakemake(finished_study, tmp_path):
    """All at once, as a whole study takes its time; `make test-faults` tries one after the other."""
    known = surroundings(tmp_path / "made")
    # Where no locale can be made it is that of C.
    asked = {key: value for of in known.values() for key, value in of.items()}
    asked |= known.get("tr_TR", known["plain C locale"])
    (tmp_path / "study").mkdir()
    again = run_apart(SMALL, tmp_path / "study", checkout=finished_study.folder, **asked)
    assert again.ok, again
    made = finished_study.hashes()
    differ = {name for name in made.keys() | again.hashes.keys() if made.get(name) != again.hashes.get(name)}
    assert {name for name in differ if not name.endswith(NOT_COMPARED)} == set()
