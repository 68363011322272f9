"""Job records that others published, by the numbers counted in their README, without this code."""

import polars as pl
import pytest
from recognised_jobs import read_recognised


@pytest.fixture
def read(find_stranger, tmp_path):
    def read_file(name):
        jobs, quarantine = read_recognised(find_stranger(name), tmp_path)
        assert quarantine.rows() == []
        return jobs

    return read_file


def measure_words(jobs):
    """Map each status to (jobs, median run time)."""
    words = jobs.group_by("status_raw").agg(pl.len(), pl.col("runtime_s").median().alias("median"))
    return {word: (count, median) for word, count, median in words.iter_rows()}


def sum_hours(jobs, amount):
    return round((jobs["runtime_s"] * jobs[amount]).sum() / 3.6e6, 4)


def test_swf(read):
    jobs = read("jobs/hpc2n_slice.swf")
    assert measure_words(jobs) == {"1": (169, 4097), "-1": (6, None)}
    assert (sum_hours(jobs, "cpu_milli"), jobs["user"].n_unique()) == (9823.3094, 6)
    assert jobs["start_s"][0] == 1_027_839_845 + 308_434 and jobs["gpu_milli"].null_count() == 175


def test_sacct_json(read):
    columns = ("job_id", "status_raw", "start_s", "runtime_s", "gpu_milli")
    assert read("jobs/sacct_2108.json").select(columns).rows() == [
        ("10", "NODE_FAIL", 1_680_193_504, 20_615, 1000),
        ("20", "REQUEUED", 1_680_127_992, 86_307, 1000),
    ]


def test_slurm_job_table(read):
    jobs = read("jobs/slurmdb_supercloud.csv")
    assert measure_words(jobs) == {
        "COMPLETED": (90, 9502.5),
        "CANCELLED": (35, 1693),
        "FAILED": (30, 3977.5),
        "TIMEOUT": (20, 43_224),
        "NODE_FAIL": (6, 165_682.5),
        "OUT_OF_MEMORY": (10, 1026),
    }
    assert (sum_hours(jobs, "gpu_milli"), (jobs["gpu_milli"] > 0).sum()) == (993.0628, 87)


def test_accounting(read):
    assert sorted(read("jobs/pbs_accounting_20151130")["runtime_s"]) == [0, 12_144, 12_901, 24_159]
    assert read("jobs/sge_accounting").height == 2
    assert read("jobs/lsb.acct")["job_id"].to_list() == ["699195"]
    jobs = read("jobs/lsf_bacct_text.dsp")
    assert (jobs.height, (jobs["outcome"] == "success").sum()) == (11, 2)


def test_trackers_and_simulators(read):
    jobs = read("jobs/wandb_ui_export.csv")
    assert measure_words(jobs) == {"finished": (64, 759.5)} and round(jobs["runtime_s"].sum() / 3600, 4) == 14.8058
    jobs = read("jobs/batsim_oar_jobs.csv")
    assert (measure_words(jobs), sum_hours(jobs, "cpu_milli")) == ({"1": (190, 89)}, 17.5669)
    assert read("jobs/pods_bare_array.json")["outcome"].value_counts().sort("outcome").rows() == [
        ("running", 1),
        ("waiting", 11),
    ]
    assert read("faults/ray/jobs.json")["outcome"].to_list() == ["success", "failure"]
