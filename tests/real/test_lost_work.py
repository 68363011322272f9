"""Lost work on openb and on the Eagle sample, against sums worked out here from the raw CSV in plain Python."""

import csv
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from of_formats import raw_schemas, table_of
from study.config import resolve
from study.yaml_files import load_yaml
from ttf.analyses.measure_losses.lost_work import lost_work, lost_work_by_month
from ttf.analyses.measure_losses.owners import concentration, failures_by_owner
from ttf.analyses.measure_losses.what_if import TRIAL
from ttf.formats.table import read as table
from ttf.infra import infra_lives
from ttf.ingest import ingest
from ttf.raw_tables import table_schemas
from whole_losses import loss_sums, owner_counts, repeats_of, runs_of, what_if_of

ROOT = Path(__file__).resolve().parents[2]
HOUR = 3600
WINDOW = 28 * 86_400
TRIALS = (60, 300, 600, 1800)


@pytest.fixture(scope="module")
def pods(shared_data):
    """(start, end, milli-GPU, failed) of the pods that ran, as integers."""
    with (shared_data / "openb/openb_pod_list_default.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["scheduled_time"]]
    return [
        (
            int(row["scheduled_time"]),
            int(row["deletion_time"]),
            int(row["num_gpu"]) * (int(row["gpu_milli"]) if row["num_gpu"] == "1" else 1000),
            row["pod_phase"] == "Failed",
        )
        for row in rows
    ]


@pytest.fixture(scope="module")
def of_openb(shared_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("openb")
    schemas = raw_schemas("openb")
    file = shared_data / "openb/openb_pod_list_default.csv"
    ingest({"pods": [file]}, {"pods": schemas["pods"]}, folder, 0.0)
    jobs = table_of("openb", "jobs", {"pods": pl.scan_parquet(folder / "pods.parquet")})
    return jobs, runs_of(jobs, None, infra_lives(jobs, None, {}))


def size_of(milli: int) -> int:
    """The upper end of the bucket: 0, 1, 2, 4, 8 ..."""
    gpus = -(-milli // 1000)
    return gpus if gpus < 2 else 1 << (gpus - 1).bit_length()


def test_openb_by_size(of_openb, pods):
    expected = defaultdict(lambda: [0, 0, 0, 0, Fraction(0)])
    for start, end, milli, failed in pods:
        row = expected[size_of(milli)]
        row[0] += 1
        row[1] += milli * (end - start)
        if failed:
            row[2] += 1
            row[3] += milli * (end - start)
            row[4] += milli * min(Fraction(end - start), Fraction(HOUR, 2))
    ours = lost_work(loss_sums(of_openb[1], HOUR, 300))
    columns = ("gpus_high", "runs", "gpu_hours", "failed_runs", "failed_gpu_hours", "first_order_gpu_hours")
    milli_hour = 1000 * HOUR
    assert ours.select(columns).rows() == [
        (size, n, gpu / milli_hour, failures, lost / milli_hour, float(loss / milli_hour))
        for size, (n, gpu, failures, lost, loss) in sorted(expected.items())
    ]
    assert (ours["runs"].sum(), ours["failed_runs"].sum()) == (7255, 1870)
    assert set(ours["infra_basis"]) == {"proxy"}


def test_openb_by_month(of_openb, pods):
    jobs, of_runs = of_openb
    begin = jobs.select(pl.min_horizontal("submit_s", "start_s").min()).item()
    ended, lost = Counter(), Counter()
    for start, end, milli, failed in pods:
        month = (end - begin) // WINDOW
        ended[month] += 1
        lost[month] += milli * (end - start) * failed
    ours = lost_work_by_month(loss_sums(of_runs, HOUR, 300, begin), begin, jobs["trace_end_s"].max())
    assert ours.select("runs", "failed_gpu_hours").rows() == [
        (ended[month], lost[month] / (1000 * HOUR)) for month in sorted(ended)
    ]
    last = max(end for _, end, _, _ in pods)
    assert ours["complete"].to_list() == [begin + (month + 1) * WINDOW <= last for month in sorted(ended)]


def test_openb_what_if(of_openb, pods):
    ours = what_if_of(of_openb[1], TRIALS).filter(pl.col("scenario") == TRIAL)
    large = [(end - start, milli, failed) for start, end, milli, failed in pods if milli > 1000]
    rows = []
    for trial in TRIALS:
        caught = [(seconds, milli) for seconds, milli, failed in large if failed and seconds <= trial]
        saved = sum(seconds * (milli - 1000) for seconds, milli in caught)
        cost = sum(1000 * min(seconds, trial) for seconds, _, failed in large if not (failed and seconds <= trial))
        rows.append((len(large), len(caught), saved / 3_600_000, cost / 3_600_000, (saved - cost) / 3_600_000))
    columns = ("n", "affected", "saved_gpu_hours", "cost_gpu_hours", "net_gpu_hours")
    assert ours.select(columns).rows() == rows


@pytest.fixture(scope="module")
def rows(shared_data):
    with (shared_data / "eagle/sample_eagle_data.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def of_eagle(shared_data, tmp_path_factory):
    own = ("my.yaml", {"study": ["eagle"]})
    entry = resolve([own], load_yaml(ROOT / "config/traces.yaml"))["registry"]["eagle"]
    folder = tmp_path_factory.mktemp("eagle")
    schemas = table_schemas(table.schema_document(entry))
    ingest({"rows": [shared_data / "eagle" / entry["files"]["rows"]]}, schemas, folder, 0.0, table.READERS)
    jobs = table_of("table", "jobs", {"rows": pl.scan_parquet(folder / "rows.parquet")}, entry)
    return jobs, runs_of(jobs, None, infra_lives(jobs, None, entry["infra_failures"]))


def test_eagle_by_size(of_eagle, rows):
    """All 15 failures are time limits, none of them laid to infrastructure."""
    gpu, failed, failures = Counter(), Counter(), Counter()
    for row in rows:
        size, seconds = size_of(1000 * int(row["gpus_req"])), int(float(row["run_time"]))
        gpu[size] += int(row["gpus_req"]) * seconds
        failed[size] += int(row["gpus_req"]) * seconds * (row["state"] == "TIMEOUT")
        failures[size] += row["state"] == "TIMEOUT"
    ours = lost_work(loss_sums(of_eagle[1], HOUR, 300))
    assert ours.select("gpus_high", "gpu_hours", "failed_runs", "failed_gpu_hours").rows() == [
        (size, gpu[size] / HOUR, failures[size], failed[size] / HOUR) for size in sorted(gpu)
    ]
    assert ours["infra_failures"].sum() == 0 == ours["first_order_gpu_hours"].sum()
    assert set(ours["infra_basis"]) == {"state"}
    # A time limit is no failure that a trial would have caught.
    assert what_if_of(of_eagle[1], TRIALS)["affected"].drop_nulls().to_list() == [0] * len(TRIALS)


def test_eagle_by_owner_and_repeats(of_eagle, rows):
    jobs, of_runs = of_eagle
    ended, failures = Counter(row["user"] for row in rows), Counter()
    for row in rows:
        failures[row["user"]] += row["state"] == "TIMEOUT"
    owners = owner_counts(jobs.lazy(), of_runs)
    ours = failures_by_owner(owners, 100, jobs).filter(pl.col("owner_by") == "user")
    assert {row[0]: row[1:] for row in ours.select("owner", "ended", "failures").iter_rows()} == {
        user: (ended[user], failures[user]) for user in ended
    }
    tenth = concentration(owners).filter(
        (pl.col("owner_by") == "user") & (pl.col("ranked_by") == "ended") & (pl.col("top_share") == 0.1)
    )
    top = sorted(ended, key=lambda user: (-ended[user], user))[: -(-len(ended) // 10)]
    assert tenth.select("owners", "owners_in_top", "ended", "failures").rows() == [
        (len(ended), len(top), sum(ended[u] for u in top), sum(failures[u] for u in top))
    ]
    after = Counter()
    for row in rows:
        before = [r for r in rows if r["user"] == row["user"] and r["end_time"] < row["start_time"]]
        if before:
            last = max(r["end_time"] for r in before)
            had_failed = any(r["state"] == "TIMEOUT" for r in before if r["end_time"] == last)
            after[had_failed, row["state"] == "TIMEOUT"] += 1
    of_users = repeats_of(jobs.lazy(), of_runs).filter(pl.col("group_by") == "user")
    told = {row["measure"]: row for row in of_users.to_dicts()}
    for measure, had_failed in (("failure_after_failure", True), ("failure_after_success", False)):
        found = (told[measure]["n"], told[measure]["events"])
        assert found == (after[had_failed, True] + after[had_failed, False], after[had_failed, True])
    assert told["not_first_share"]["events"] == 15 - sum(n > 0 for n in failures.values())
