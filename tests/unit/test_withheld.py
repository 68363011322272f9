"""Tables hold no estimate that missing ends withhold: not that of the failures with an end, under any name."""

from collections.abc import Mapping

import numpy as np
import polars as pl
import pytest
from ttf.analyses.factors.estimate_hazards.compute import compute as estimate_hazards
from ttf.analyses.nodes.track_failure_rate.compute import compute as track_failure_rate
from ttf.analyses.scaling.measure_sizes.compute import compute as measure_sizes
from ttf.analyses.time_to_failure.fit_mttf.compute import compute as fit_mttf
from ttf.analyses.time_to_failure.judge_lifetimes.compute import compute as judge_lifetimes
from ttf.engine.contract import REAL
from ttf.engine.storage.tables import read_table, write_product
from ttf.page.results_tables import load_all_contracts
from ttf.records.infra import EVENT, INFRA_COLUMNS
from ttf.records.inputs import Inputs

CONTRACTS = load_all_contracts()
SETTINGS = {
    "max_steps": 50,
    "strata": ["gpu_type", "gpu_count"],
    "causes": [],
    "covariates": ["gpu_count", "gpu_type"],
    "block_days": 7,
    "gives": "jobs",
    "node_gpus": 8,
    "above_gpus": 0,
}
# Counts and times are facts. A level of confidence, and the slope of the 1/N law, are constants.
FACTS = ("confidence", "expected_slope", "gpu_days", "node_days", "gpus_mean")


def simulate(n: int = 3_000) -> pl.DataFrame:
    """Return jobs of 60 users, a failure rate per node and day of 1, and other ends."""
    rng = np.random.default_rng(n)
    gpus = 8 * 2 ** rng.integers(0, 5, n)
    fails_s, ends_s = rng.exponential(86_400 * 8 / gpus), rng.exponential(40_000, n)
    start_s = np.sort(rng.integers(0, 90 * 86_400, n))
    columns = {
        "unit_id": [str(number) for number in range(n)],
        "start_s": start_s,
        "duration_s": np.ceil(np.minimum(fails_s, ends_s)).astype(np.int64),
        "event": np.where(fails_s < ends_s, "failure", "success"),
        "gpu_count": gpus,
        "gpu_milli": 1_000 * gpus,
        "nodes": gpus // 8,
        "gpu_type": rng.choice(["A100", "H100"], n),
        "cluster": rng.integers(0, 60, n),
    }
    columns |= {"entry_s": 0, "duration_max_s": None, "cluster_by": "user", "group_by": "user", "basis": "state"}
    frame = pl.DataFrame(columns).with_columns(
        group="cluster", block=pl.col("start_s") // 604_800, block_by=pl.lit("week")
    )
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in INFRA_COLUMNS.items() if name not in frame.columns]
    return frame.with_columns(missing).select(pl.col(name).cast(dtype) for name, dtype in INFRA_COLUMNS.items())


def analyse(durations: pl.DataFrame, folder) -> Mapping[str, pl.DataFrame]:
    """Run the analyses of the time to failure; return their tables as a program reads them."""
    (folder / "tables").mkdir(parents=True)
    files = {name: folder / f"{name}.parquet" for name in ("durations", "durations_infra", "nodes")}
    durations.write_parquet(files["durations"])
    is_failure = pl.col("event") == "failure"
    durations.with_columns(event=pl.when(is_failure).then(pl.lit(EVENT))).write_parquet(files["durations_infra"])
    pl.DataFrame({"gpu_count": [8]}).write_parquet(files["nodes"])
    for compute in (fit_mttf, estimate_hazards, judge_lifetimes, measure_sizes, track_failure_rate):
        products = compute(Inputs(files, CONTRACTS, SETTINGS))
        for name, product in products.items() if isinstance(products, Mapping) else products:
            files[name] = folder / CONTRACTS[name].path
            write_product(product, CONTRACTS[name], files[name])
    tables = {name: path for name, path in files.items() if path.suffix == ".csv"}
    return {name: read_table(path, CONTRACTS[name]) for name, path in tables.items()}


def list_estimates(tables: Mapping[str, pl.DataFrame]) -> set[float]:
    numbers = set()
    for name, table in tables.items():
        estimates = [column for column, cell in CONTRACTS[name].columns.items() if cell.kind == REAL]
        for column in set(estimates).difference(FACTS):
            numbers |= {round(value, 9) for value in table[column].drop_nulls()}
    return numbers - {0.0, 1.0}


@pytest.mark.parametrize(("share", "is_withheld"), [(0.02, False), (0.3, True)])
def test_no_cell_has_the_estimate_of_the_failures_with_an_end(tmp_path, share, is_withheld):
    durations = simulate()
    is_missing = (pl.col("event") == "failure") & pl.Series(np.random.default_rng(1).random(durations.height) < share)
    timed = durations.filter(~is_missing)
    some = durations.with_columns(
        duration_s=pl.when(~is_missing).then("duration_s"), duration_max_s=pl.when(is_missing).then(10**6)
    )
    naive, tables = analyse(timed, tmp_path / "timed"), analyse(some, tmp_path / "some")
    estimates = list_estimates(naive)
    assert len(estimates) > 1_000
    mttf, plain = (frames["mttf"].filter(stratum_by="all") for frames in (tables, naive))
    shares = tables["failures_without_end"].filter(pl.col("failures") > 0)["share_without_end"]
    if is_withheld:
        assert shares.min() > 0.05 and not estimates & list_estimates(tables)
        low, high = mttf.select("mttf_low_s", "mttf_high_s").row(0)
        assert low < plain["mttf_s"][0] < high and "no recorded end" in mttf["reason"][0]
    else:
        assert shares.max() <= 0.05
        assert mttf["mttf_s"].equals(plain["mttf_s"]) and mttf["mttf_low_s"].null_count() == mttf.height
        for name, column in {"cox": "hazard_ratio", "node_failure_rate": "ci_low", "survival": "survival"}.items():
            assert tables[name][column].equals(naive[name][column])
