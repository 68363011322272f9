"""The unit of sizes: its choice for a trace, its words and columns, and the round trip of tables."""

from typing import NamedTuple

import polars as pl
import pytest
from ttf.analyses.catalogue import load_analyses
from ttf.display import phrases
from ttf.engine.size_unit import CORE, GPU, JOB, NODE, UNITS
from ttf.engine.storage.tables import detect_unit, read_table, read_without_renaming, write_product
from ttf.records.jobs import convert_size_unit, size_units

TABLES = {
    table.name: table
    for analysis in load_analyses().values()
    for table in analysis.tables
    if analysis.in_size_unit and table.path.endswith(".csv")
}


class Wording(NamedTuple):
    gpus: str
    node: str
    job: str


WORDINGS = (
    Wording("GPU time in failed attempts", "Node time in failed attempts", "Run time in failed attempts"),
    Wording("of 12 GPU-hours of GPU time.", "of 12 node-hours of node time.", "of 12 job-hours of run time."),
    Wording("One GPU. GPUs of a 4-GPU job", "One node. Nodes of a 4-node job", "One job. Jobs of a 4-job job"),
    Wording(*["By account, GPU type and size; GPU activity"] * 3),
    Wording(*["CUDA_GPUS, PGPU and GPUDirect"] * 3),
)


@pytest.mark.parametrize("wording", WORDINGS)
def test_sentences_have_the_unit_in_place_of_gpus(wording):
    assert (GPU.worded(wording.gpus), NODE.worded(wording.gpus), JOB.worded(wording.gpus)) == wording


def test_keys_and_texts_of_a_trace_do_not_change():
    text = f"{{data.gpus|4 GPUs}} of GPU jobs named {phrases.quote_trace_text('4-GPU run')}"
    expected = f"{{data.gpus|4 nodes}} of node jobs named {phrases.quote_trace_text('4-GPU run')}"
    assert phrases.convert_units(text, NODE) == expected
    assert phrases.convert_units({"gpus": ["A GPU", (1, None)]}, CORE) == {"gpus": ["A core", (1, None)]}


def jobs(gpus=0, nodes=0, cores=0, started=1_000, waiting=0):
    """Make jobs; the arguments count the started jobs with a size in each unit, all of them, and the waiting."""
    rows = range(started)
    columns = {
        "outcome": ["success"] * started,
        "gpu_milli": [500 if row < gpus else None for row in rows],
        "nodes": [3 if row < nodes else None for row in rows],
        "cpu_milli": [2_000 if row < cores else None for row in rows],
        "size": [2] * started,
    }
    waiting_job = {"outcome": ["waiting"], "gpu_milli": [500], "nodes": [3], "cpu_milli": [2_000], "size": [2]}
    schema = {"outcome": pl.String} | dict.fromkeys(list(columns)[1:], pl.Int64)
    return pl.concat([pl.DataFrame(columns, schema=schema), *[pl.DataFrame(waiting_job, schema=schema)] * waiting])


@pytest.mark.parametrize(
    ("frame", "unit"),
    [
        (jobs(gpus=10, nodes=1_000, cores=1_000), GPU),
        (jobs(gpus=9, nodes=1_000, cores=1_000), NODE),
        (jobs(nodes=499, cores=1_000), CORE),
        (jobs(nodes=499, cores=499), JOB),
        (jobs(nodes=1_000, waiting=500), NODE),
        (jobs(started=0, waiting=3), GPU),
    ],
)
def test_the_first_unit_with_enough_jobs_is_used(frame, unit):
    units = size_units(frame)
    assert units["unit"].to_list() == [*UNITS]
    assert units.filter("used")["unit"].to_list() == [unit]


@pytest.mark.parametrize(
    ("unit", "milli"), [(GPU, [1_000, None]), (NODE, [3_000, 3_000]), (CORE, [4_000, None]), (JOB, [1_000, 1_000])]
)
def test_sizes_count_the_whole_job_in_the_unit(unit, milli):
    frame = jobs(gpus=1, nodes=2, cores=1, started=2).with_columns(gpu_count=0)
    sized = convert_size_unit(frame.lazy(), unit).collect()
    assert sized["gpu_milli"].to_list() == milli
    assert sized["gpu_count"].to_list() == [-(-(size or 0) // 1_000) for size in milli]
    assert sized["size"].to_list() == [1, 1], "that of all instances is in the request"


def test_sizes_of_attempts_are_of_all_of_them():
    attempts = pl.LazyFrame({"gpu_milli": [4_000], "cpu_milli": [64_000]})
    assert convert_size_unit(attempts, CORE).collect().to_dict(as_series=False) == {
        "gpu_milli": [64_000],
        "cpu_milli": [64_000],
    }
    no_cores = convert_size_unit(pl.LazyFrame({"gpu_milli": [4_000]}), CORE).collect()
    assert no_cores["gpu_milli"].to_list() == [None], "what is not recorded is not known"


def example(contract):
    """Make two rows of the contract with different values in each column."""
    value_by_type = {pl.String: "a{}", pl.Int64: 10, pl.Float64: 0.5, pl.Boolean: True}
    columns = {
        name: [value.format(index), f"b{index}"] if isinstance(value := value_by_type[kind], str) else [value, value]
        for index, (name, kind) in enumerate(contract.schema.items())
    }
    return pl.DataFrame(columns, schema=contract.schema)


@pytest.mark.parametrize("unit", UNITS)
def test_tables_in_each_unit_are_read_as_they_were_computed(tmp_path, unit):
    for name, contract in TABLES.items():
        frame, path = example(contract), tmp_path / "t.csv"
        write_product(frame, contract, path, unit)
        raw, as_written = read_without_renaming(path, contract)
        assert list(raw.columns) == list(as_written.columns) and len(set(raw.columns)) == len(raw.columns), name
        has_unit = any(unit.named(name) != name and not name.startswith("node_gpus") for name in contract.columns)
        assert detect_unit(path, contract) == (unit if has_unit and not contract.is_in_gpus else GPU), name
        restored = read_table(path, contract)
        assert restored.schema == frame.schema, name
        # Where the unit is nodes, the columns of GPUs and of nodes share one name.
        renamed = [column for column, new in contract.names_in(unit).items() if column != new in contract.columns]
        unchanged = [column for column in contract.columns if column not in renamed]
        assert restored.select(unchanged).equals(frame.select(unchanged)), name


def test_strata_of_sizes_and_reasons_are_in_the_unit(tmp_path):
    contract = TABLES["strata"]
    frame = example(contract).with_columns(
        stratum_by=pl.Series(["gpus", "gpu_type"]), stratum=pl.lit("1-GPU"), reason=pl.lit("no GPU")
    )
    write_product(frame, contract, tmp_path / "strata.csv", CORE)
    raw, _ = read_without_renaming(tmp_path / "strata.csv", contract)
    assert raw["stratum_by"].to_list() == ["cores", "gpu_type"]
    assert raw["reason"].to_list() == ["no core"] * 2 and raw["stratum"].to_list() == ["1-GPU"] * 2
    assert read_table(tmp_path / "strata.csv", contract)["stratum_by"].to_list() == ["gpus", "gpu_type"]
