"""One study of real traces, made once for all of pytest's workers."""

from pathlib import Path

import pytest
import yaml
from study_runs import Checkout, check_out, make_once

FOLDERS = {
    "openb": "openb",
    "titan": "titan",
    "lanl": "lanl",
    "infinitehbd": "infinitehbd",
    "eagle": "eagle",
    "pai": "pai-instances",
    "late": "strangers/reports/one_time_limit",
}


def make_real_study(folder: Path, data: Path) -> None:
    registry = {name: {"folder": str(data / source)} for name, source in FOLDERS.items()}
    registry["pai"] |= {"format": "pai2020"}
    registry["late"] |= {"format": "sacct", "outcomes": {"cancelled": ["FAILED"]}}
    registry["openb"] |= {"windows": {"by": "month"}}
    # Thin the curves like those of large traces; a few simulations are as good here.
    few = {name: {"simulations": 50} for name in ("ettr", "outages")}
    config = {"study": list(FOLDERS), "registry": registry, "survival": {"max_steps": 40}} | few
    study = check_out(folder)
    (folder / "afternoon.yaml").write_text(yaml.safe_dump(config))
    process = study.report(config="afternoon.yaml")
    assert process.returncode == 0, process.stdout + process.stderr
    (folder / "printed.txt").write_text(process.stdout + process.stderr)


@pytest.fixture(scope="session")
def real_study(shared_data) -> Checkout:
    """Return a finished study of seven real traces; tests may add products, but change none.

    In the trace `late`, FAILED counts as cancelled.
    """
    if absent := [folder for folder in FOLDERS.values() if not (shared_data / folder).is_dir()]:
        pytest.skip(f"not beside the checkout: {', '.join(absent)}")
    return Checkout(make_once("real_study", lambda folder: make_real_study(folder, shared_data)))


@pytest.fixture(scope="session")
def results(real_study) -> Path:
    return real_study.folder / "results"
