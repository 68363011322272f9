"""The rule fetch downloads a trace once and checks it; files fetched by hand work the same."""

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile

import polars as pl
import pytest
from loopback import PAGE, Site, body, send_file, truncate
from study_runs import PODS_HEADER, Checkout, clone_environment, pods

PODS = "openb_pod_list_default.csv.gz"
NODES = "openb_node_list_all_node.csv"
TABLES = {
    PODS: gzip.compress("\n".join([PODS_HEADER, *pods()]).encode(), mtime=0),
    NODES: b"sn,cpu_milli,memory_mib,gpu,model\nopenb-node-0,64000,262144,2,T4\n",
}


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Site()
    server.files = {f"/{name}": content for name, content in TABLES.items()}
    yield server
    server.stop()


@pytest.fixture
def config(site):
    def download_entry(name, **fields):
        content = TABLES[name]
        urls = [f"{site.url}/gone/{name}", f"{site.url}/{name}"]
        return {"urls": urls, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), **fields}

    inside = hashlib.sha256(gzip.decompress(TABLES[PODS])).hexdigest()
    download = {"pods": download_entry(PODS, content_sha256=inside), "nodes": download_entry(NODES)}
    return {"study": ["mine"], "registry": {"mine": {"format": "openb", "folder": "data/mine", "download": download}}}


def run_ingest(study: Checkout, config: dict, check=True) -> str:
    process = study.snakemake("--", "ingested", check=check, **config)
    return process.stdout + process.stderr


def account(study: Checkout) -> list[tuple]:
    return pl.read_csv(study.folder / "results/mine/quality/row_account.csv").select("table", "rows_accepted").rows()


def data(study: Checkout) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((study.folder / "data/mine").iterdir())}


def test_downloaded_once_then_a_source_file_like_any_other(checkout, site, config):
    site.habits[f"/{PODS}"] = [truncate(1000), send_file]
    output = run_ingest(checkout, config)
    assert account(checkout) == [("pods", 200), ("nodes", 1)]
    assert data(checkout) == dict(sorted(TABLES.items()))
    assert site.ranges(f"/{PODS}") == [None, "bytes=1000-"]
    assert "SHA-256 as expected" in output
    log = (checkout.folder / f"logs/mine/fetch_{PODS}.log").read_text()
    assert log.startswith(f"mine: fetch: {PODS}: 0.0 MB from 127.0.0.1:")
    site.asked.clear()
    # Changes that rerun other rules make fetch neither remove a file nor request it again.
    with (checkout.folder / "scripts/ttf/raw/fetch.py").open("a") as code:
        code.write("\n")
    entry = config["registry"]["mine"]
    entry["note"] = "another note"
    entry["download"]["pods"]["sha256"] = "0" * 64
    assert checkout.planned("--", "ingested", **config) == set()
    checkout.snakemake("--delete-all-output", "--", "ingested", **config)
    assert data(checkout) == dict(sorted(TABLES.items()))
    # Only missing files are fetched again.
    (checkout.folder / "data/mine" / NODES).unlink()
    run_ingest(checkout, config)
    assert {path for path, *_ in site.asked} == {f"/gone/{NODES}", f"/{NODES}"}
    assert account(checkout) == [("pods", 200), ("nodes", 1)]


def test_files_fetched_by_hand_are_used_as_they_are(checkout, site, config):
    folder = checkout.folder / "data/mine"
    folder.mkdir(parents=True)
    (folder / "openb_pod_list_default.csv").write_bytes(gzip.decompress(TABLES[PODS]))
    assert checkout.planned("--", "ingested", **config) == {"fetch", "ingest", "ingested"}
    (folder / NODES).write_bytes(TABLES[NODES])
    run_ingest(checkout, config)
    assert account(checkout) == [("pods", 200), ("nodes", 1)]
    assert site.asked == []


@pytest.mark.parametrize(
    ("habit", "message"),
    [(body(PAGE), "sent an HTML or XML page"), (body(TABLES[PODS][:-1] + b"x"), "has the SHA-256")],
    ids=["page", "wrong"],
)
def test_a_failed_download_is_one_message_and_a_rerun_goes_on(checkout, site, config, habit, message):
    site.habits[f"/{PODS}"] = [habit]
    output = run_ingest(checkout, config, check=False)
    assert f"error in mine {PODS}: fetch\n" in output
    assert f"data/mine/{PODS}: the download failed." in output
    assert f"{site.url}/{PODS}: " in output
    assert message in output
    assert "Traceback" not in output
    assert not (checkout.folder / "data/mine" / PODS).exists()
    assert not (checkout.folder / "results/mine").exists()
    site.habits.clear()
    run_ingest(checkout, config)
    assert account(checkout) == [("pods", 200), ("nodes", 1)]
    assert data(checkout) == dict(sorted(TABLES.items()))


def test_a_killed_download_goes_on_where_it_was(checkout, site, config):
    site.habits[f"/{PODS}"] = [truncate(1000, after_send=lambda handler, server: server.over.wait(30))]
    checkout.snakemake("--dry-run", **config)
    command = [sys.executable, "-m", "snakemake", "--configfile", "my.yaml", "--", "ingested"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    env = clone_environment(checkout.folder)
    run = subprocess.Popen(command, cwd=checkout.folder, env=env, start_new_session=True, **quiet)
    part = checkout.folder / f"data/mine/.{PODS}.part"
    try:
        for _ in range(1000):
            if part.exists() and part.stat().st_size == 1000:
                break
            site.over.wait(0.02)
    finally:
        os.killpg(run.pid, 9)
        run.wait()
    assert part.stat().st_size == 1000
    site.habits.clear()
    checkout.snakemake("--unlock", **config)
    run_ingest(checkout, config)
    assert site.ranges(f"/{PODS}")[-1] == "bytes=1000-"
    assert account(checkout) == [("pods", 200), ("nodes", 1)]


def test_an_archive_of_several_tables_is_downloaded_once_and_read_as_it_lies(checkout, site):
    """Like Philly's: five tables in one archive, in the folder of its packer."""
    start, end = "2017-10-03 00:00:30", "2017-10-03 00:02:00"
    log = [
        {
            "status": "Pass", "vc": "a", "user": "u", "jobid": "application_1506638472019_1", "submitted_time": start,
            "attempts": [{"start_time": start, "end_time": end, "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}],
        }
    ]  # fmt: skip
    tables = {
        "cluster_job_log": json.dumps(log),
        "cluster_gpu_util": "time,machineId," + ",".join(f"gpu{n}_util" for n in range(8)) + "\n"
        "2017-10-03 00:01:00 PDT,m1,50,,,,,,,,\n",
        "cluster_cpu_util": "time,machine_id,cpu_util\n2017-10-03 00:01:00 PDT,m1,5\n",
        "cluster_mem_util": "time,machine_id,mem_total,mem_free\n2017-10-03 00:01:00 PDT,m1,2048,1024\n",
        "cluster_machine_list": "machineId, number of GPUs, single GPU mem\nm1, 2, 12GB\nm1, 2, 12GB\n",
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in tables.items():
            info = tarfile.TarInfo(f"./trace-data/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    archive_bytes = buffer.getvalue()
    site.files["/trace-data.tar.gz"] = archive_bytes
    facts = {
        "urls": [f"{site.url}/trace-data.tar.gz"],
        "bytes": len(archive_bytes),
        "sha256": hashlib.sha256(archive_bytes).hexdigest(),
    }
    download = {name.removeprefix("cluster_"): facts | {"member": name} for name in tables}
    config = {"study": ["philly"], "registry": {"philly": {"download": download}}, "quarantine": {"max_share": 0.5}}
    targets = ("results/philly/jobs.parquet", "results/philly/quality/suggested_schema.yaml")
    checkout.snakemake("--", *targets, **config)
    assert [path for path, *_ in site.asked] == ["/trace-data.tar.gz"]
    assert [path.name for path in (checkout.folder / "data/philly").iterdir()] == ["trace-data.tar.gz"]
    jobs = pl.read_parquet(checkout.folder / "results/philly/jobs.parquet")
    assert jobs.select("outcome", "runtime_s", "gpu_milli", "gpu_used_milli").rows() == [("success", 90, 1000, 500)]
    account = pl.read_csv(checkout.folder / "results/philly/quality/row_account.csv")
    assert account["rows_read"].to_list() == [1, 1, 1, 1, 2]
    quarantine = pl.read_parquet(checkout.folder / "results/philly/quality/quarantine.parquet")
    assert quarantine.select("file", "line", "reason", "text").rows() == [
        ("cluster_machine_list", 3, "duplicate_key", "m1, 2, 12GB")
    ]
    assert checkout.planned("--", *targets, **config) == set()
