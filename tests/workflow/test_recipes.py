"""Files of a recipe, typed as a user does: recognised, piped, and by the recipe's own configuration."""

import io
import json
import sys
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from study_runs import check_out

START = datetime(2025, 1, 6, tzinfo=UTC)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return check_out(tmp_path_factory.mktemp("recipes") / "checkout")


def make_pod(number):
    """Make a pod that was created every 10 minutes and began a minute later; every third one fails."""
    times = [f"{START + timedelta(minutes=10 * number + m):%Y-%m-%dT%H:%M:%SZ}" for m in (0, 1, 21 + number % 200)]
    is_failed = number % 3 == 0
    state = {
        "terminated": {"reason": "Error", "exitCode": int(is_failed), "startedAt": times[1], "finishedAt": times[2]}
    }
    return {
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "namespace": f"n{number % 7}", "uid": f"u{number}"}
        | {"creationTimestamp": times[0]},
        "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]},
        "status": {"phase": "Failed" if is_failed else "Succeeded", "containerStatuses": [{"state": state}]},
    }


PODS = json.dumps({"items": [make_pod(number) for number in range(400)]})


def pipe(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_a_pipe_becomes_a_page(checkout, monkeypatch):
    pipe(monkeypatch, PODS)
    process = checkout.report(data="-")
    assert process.returncode == 0, process.stdout + process.stderr
    assert "Next requests" in (checkout.folder / "results/studies/stdin/report/index.html").read_text()
    # Typed again without arguments, it is the same study of the same file.
    again = checkout.report("-n", study="stdin")
    assert "Nothing to be done" in again.stdout + again.stderr
    pipe(monkeypatch, "")
    process = checkout.report(data="-")
    assert process.returncode == 1 and "-: nothing was piped into the command" in process.stderr


def test_a_recipe_is_a_configuration(checkout):
    (checkout.folder / "pods.json").write_text(PODS)
    product = "results/kubernetes/jobs.parquet"
    process = checkout.report("--", product, config="config/mappings/kubernetes.yaml", data="pods.json")
    assert process.returncode == 0, process.stdout + process.stderr
    assert pl.read_parquet(checkout.folder / product)["outcome"].value_counts(sort=True)["count"].to_list() == [
        266,
        134,
    ]


def test_wrong_data_is_named(checkout):
    (checkout.folder / "two.yaml").write_text("study: [a, b]\n")
    for config, data, message in (
        ("config/mappings/ray.yaml", "nowhere.csv", "nowhere.csv: there is no such file or folder."),
        ("two.yaml", "Makefile", "Makefile: --config two.yaml must name one trace"),
    ):
        process = checkout.report(config=config, data=data)
        assert process.returncode == 1 and message in process.stderr, process.stderr
