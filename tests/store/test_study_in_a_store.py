"""A study with its products in an S3-compatible store, and the profile for Kubernetes."""

import hashlib
from pathlib import Path

import pytest
import yaml
from study_runs import ROOT, check_out, pods, write_pods

boto3 = pytest.importorskip("boto3", reason="needs the environment of locks/kubernetes.lock")
moto_server = pytest.importorskip("moto.server", reason="needs the environment of locks/kubernetes.lock")
pytest.importorskip("snakemake_storage_plugin_s3", reason="Snakemake's storage plugin for S3 is missing")

BUCKET = "study"
KEYS = {"ACCESS_KEY": "key", "SECRET_KEY": "secret"}  # the test's store accepts any keys


@pytest.fixture
def endpoint(monkeypatch):
    """Yield the address of an empty store on loopback."""
    for name, value in KEYS.items():
        monkeypatch.setenv(f"SNAKEMAKE_STORAGE_S3_{name}", value)
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def hashes_in_store(endpoint: str, folder: str) -> dict[str, str]:
    """Return the SHA-256 of every object in a folder of the bucket by path."""
    client = boto3.resource(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=KEYS["ACCESS_KEY"],
        aws_secret_access_key=KEYS["SECRET_KEY"],
    )
    objects = client.Bucket(BUCKET).objects.filter(Prefix=f"{folder}/")
    return {
        item.key.removeprefix(f"{folder}/"): hashlib.sha256(item.get()["Body"].read()).hexdigest() for item in objects
    }


def test_a_study_in_a_store_gives_the_bytes_of_one_on_the_disk(endpoint, tmp_path):
    store_checkout, disk_checkout = check_out(tmp_path / "store"), check_out(tmp_path / "disk")
    config = write_pods(store_checkout, pods(60))
    write_pods(disk_checkout, pods(60))
    process = store_checkout.snakemake(
        *("--cores", "2", "--default-storage-provider", "s3", "--default-storage-prefix", f"s3://{BUCKET}"),
        *("--storage-s3-endpoint-url", endpoint),
        **config,
    )
    assert f"s3://{BUCKET}/results/studies/mine/report/index.html" in process.stderr
    assert not (store_checkout.folder / "results").exists()
    disk_checkout.snakemake("--cores", "2", **config)
    expected = disk_checkout.hashes()
    # Only the study on the disk has a manifest.
    del expected["studies/mine/manifest.json"]
    assert hashes_in_store(endpoint, "results") == expected


def test_every_key_of_the_profile_for_kubernetes_is_an_option():
    pytest.importorskip("snakemake_executor_plugin_kubernetes", reason="Snakemake's executor for Kubernetes is missing")
    from snakemake.cli import get_argument_parser

    options = {name.lstrip("-") for action in get_argument_parser()._actions for name in action.option_strings}
    profile = yaml.safe_load(Path(ROOT / "profiles" / "kubernetes" / "profile.yaml").read_text(encoding="utf-8"))
    assert set(profile) <= options
