"""The unit of sizes: which one a trace has, its words, its columns, and tables that come back as they were computed."""

from typing import NamedTuple

import polars as pl
import pytest
from ttf.analyses.catalogue import rooms
from ttf.display import phrases
from ttf.engine.size_unit import CORE, GPU, JOB, NODE, UNITS
from ttf.engine.storage.tables import detect_unit, read_as_written, read_table, write_product
from ttf.records.jobs import in_size_unit, size_units

OTHERS = (NODE, CORE, JOB)
TABLES = {
    table.name: table
    for analysis in rooms().values()
    for table in analysis.tables
    if analysis.in_size_unit and table.path.endswith(".csv")
}


class Said(NamedTuple):
    gpus: str
    node: str
    job: str


WORDED = (
    Said("GPU time in failed attempts", "Node time in failed attempts", "Run time in failed attempts"),
    Said("of 12 GPU-hours of GPU time.", "of 12 node-hours of node time.", "of 12 job-hours of run time."),
    Said("One GPU. GPUs of a 4-GPU job", "One node. Nodes of a 4-node job", "One job. Jobs of a 4-job job"),
    Said("By account, GPU type and size; GPU activity", *["By account, GPU type and size; GPU activity"] * 2),
    Said("CUDA_GPUS, PGPU and GPUDirect", *["CUDA_GPUS, PGPU and GPUDirect"] * 2),
)


@pytest.mark.parametrize("words", WORDED)
def test_sentences_have_the_unit_in_place_of_gpus(words):
    assert (GPU.worded(words.gpus), NODE.worded(words.gpus), JOB.worded(words.gpus)) == words


def test_columns_have_the_unit_in_their_names():
    assert [
        NODE.named(name) for name in ("gpu_hours", "GPUs", "gpus_high", "saved_gpu_hours", "gpu_type", "rgpus")
    ] == [*("node_hours", "nodes", "nodes_high", "saved_node_hours", "gpu_type", "rgpus")]
    assert GPU.named("gpu_hours") == "gpu_hours"


def test_keys_and_texts_of_a_trace_are_left_alone():
    text = f"{{data.gpus|4 GPUs}} of GPU jobs named {phrases.of_trace('4-GPU run')}"
    expected = f"{{data.gpus|4 nodes}} of node jobs named {phrases.of_trace('4-GPU run')}"
    assert phrases.in_unit(text, NODE) == expected
    assert phrases.in_unit({"gpus": ["A GPU", (1, None)]}, CORE) == {"gpus": ["A core", (1, None)]}


def jobs(gpus=0, nodes=0, cores=0, every=1_000, waiting=0):
    """How many of the jobs that started have a size in each unit."""
    rows = range(every)
    frame = {
        "outcome": ["success"] * every,
        "gpu_milli": [500 if row < gpus else None for row in rows],
        "nodes": [3 if row < nodes else None for row in rows],
        "cpu_milli": [2_000 if row < cores else None for row in rows],
        "size": [2] * every,
    }
    more = {"outcome": ["waiting"], "gpu_milli": [500], "nodes": [3], "cpu_milli": [2_000], "size": [2]}
    schema = {"outcome": pl.String} | dict.fromkeys(list(frame)[1:], pl.Int64)
    return pl.concat([pl.DataFrame(frame, schema=schema), *[pl.DataFrame(more, schema=schema)] * waiting])


@pytest.mark.parametrize(
    ("has", "unit"),
    [
        (jobs(gpus=10, nodes=1_000, cores=1_000), GPU),
        (jobs(gpus=9, nodes=1_000, cores=1_000), NODE),
        (jobs(nodes=500), NODE),
        (jobs(nodes=499, cores=1_000), CORE),
        (jobs(nodes=499, cores=499), JOB),
        (jobs(), JOB),
        (jobs(nodes=1_000, waiting=500), NODE),
        (jobs(every=0, waiting=3), GPU),
        (jobs(every=0), GPU),
    ],
)
def test_the_first_unit_that_enough_jobs_have_is_used(has, unit):
    units = size_units(has)
    assert units["unit"].to_list() == [*UNITS]
    assert units.filter("used")["unit"].to_list() == [unit]


@pytest.mark.parametrize(
    ("unit", "milli"), [(GPU, [1_000, None]), (NODE, [3_000, 3_000]), (CORE, [4_000, None]), (JOB, [1_000, 1_000])]
)
def test_sizes_are_of_a_whole_job_in_the_unit(unit, milli):
    frame = jobs(gpus=1, nodes=2, cores=1, every=2).with_columns(gpu_count=0)
    sized = in_size_unit(frame.lazy(), unit).collect()
    assert sized["gpu_milli"].to_list() == milli
    assert sized["gpu_count"].to_list() == [-(-(one or 0) // 1_000) for one in milli]
    assert sized["size"].to_list() == [1, 1], "that of all instances is in the request"


def test_sizes_of_attempts_are_of_all_of_them():
    attempts = pl.LazyFrame({"gpu_milli": [4_000], "cpu_milli": [64_000]})
    assert in_size_unit(attempts, CORE).collect()["gpu_milli"].to_list() == [64_000]
    assert "gpu_count" not in in_size_unit(attempts, CORE).collect_schema()
    no_cores = in_size_unit(pl.LazyFrame({"gpu_milli": [4_000]}), CORE).collect()
    assert no_cores["gpu_milli"].to_list() == [None], "what is not recorded is not known"


def example(contract):
    """A frame of two rows with other values in each column."""
    of = {pl.String: "a{}", pl.Int64: 10, pl.Float64: 0.5, pl.Boolean: True}
    columns = {
        name: [value.format(place), f"b{place}"] if isinstance(value := of[kind], str) else [value, value]
        for place, (name, kind) in enumerate(contract.schema.items())
    }
    return pl.DataFrame(columns, schema=contract.schema)


@pytest.mark.parametrize("unit", UNITS)
def test_tables_in_each_unit_are_read_as_they_were_computed(tmp_path, unit):
    for name, contract in TABLES.items():
        frame, path = example(contract), tmp_path / "t.csv"
        write_product(frame, contract, path, unit)
        there, written = read_as_written(path, contract)
        assert list(there.columns) == list(written.columns) and len(set(there.columns)) == len(there.columns), name
        named = any(unit.named(name) != name and not name.startswith("node_gpus") for name in contract.columns)
        assert detect_unit(path, contract) == (unit if named and not contract.of_gpus else GPU), name
        again = read_table(path, contract)
        assert again.schema == frame.schema, name
        # Of GPUs and of nodes, where the unit is nodes: one column, that of nodes.
        both = [column for column, new in contract.names_in(unit).items() if column != new in contract.columns]
        same = [column for column in contract.columns if column not in both]
        assert again.select(same).equals(frame.select(same)), name


def test_strata_of_sizes_and_reasons_are_in_the_unit(tmp_path):
    contract = TABLES["strata"]
    frame = example(contract).with_columns(
        stratum_by=pl.Series(["gpus", "gpu_type"]), stratum=pl.lit("1-GPU"), reason=pl.lit("no GPU")
    )
    write_product(frame, contract, tmp_path / "strata.csv", CORE)
    there, _ = read_as_written(tmp_path / "strata.csv", contract)
    assert there["stratum_by"].to_list() == ["cores", "gpu_type"]
    assert there["reason"].to_list() == ["no core"] * 2 and there["stratum"].to_list() == ["1-GPU"] * 2
    assert read_table(tmp_path / "strata.csv", contract)["stratum_by"].to_list() == ["gpus", "gpu_type"]
