"""No product depends on the machine: locale, time zone, threads, order of hashes, permissions, fonts."""

from run_environments import surroundings
from study_runs import SMALL
from whole_study import run_in_subprocess

# Products of Snakemake alone; the first two hold digests of the code, which only the rules compute.
NOT_COMPARED = ("manifest.json", "model_cache.parquet", ".snakemake_timestamp")


def test_the_same_bytes_in_other_surroundings_and_without_snakemake(finished_study, tmp_path):
    """Combine all cases in one study, which takes long; `make test-faults` tests each case alone."""
    cases = surroundings(tmp_path / "made")
    # Without localedef, use the C locale.
    options = {key: value for case in cases.values() for key, value in case.items()}
    options |= cases.get("tr_TR", cases["plain C locale"])
    (tmp_path / "study").mkdir()
    result = run_in_subprocess(SMALL, tmp_path / "study", checkout=finished_study.folder, **options)
    assert result.ok, result
    expected = finished_study.hashes()
    differences = {
        name for name in expected.keys() | result.hashes.keys() if expected.get(name) != result.hashes.get(name)
    }
    assert {name for name in differences if not name.endswith(NOT_COMPARED)} == set()
