"""The synthetic traces: a seed gives the embedded bytes with any number of threads, another seed gives others."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from samples.pack import EMBEDDED, write_tables
from samples.pai2020 import sample as pai2020
from samples.philly import sample as philly
from samples.sacct import sample as sacct
from ttf.engine.errors import StudyError
from whole_study import hashes

ROOT = Path(__file__).parents[2]
# Module of the sample, and its smallest size.
SAMPLES = {"pai2020": (pai2020, 1_000), "philly": (philly, 300), "sacct": (sacct, 300)}
WRITE = "from pathlib import Path; from samples.{}.sample import write_sample; write_sample(Path('b'), {}, seed=1)"


@pytest.mark.parametrize("name", EMBEDDED)
def test_the_generators_write_the_embedded_tables(tmp_path, name):
    """A change of a generator changes these bytes; read the report of the new sample with care."""
    write_tables(name, *EMBEDDED[name], tmp_path)
    tables = json.loads((ROOT / "workflow/samples" / f"{name}.json").read_text())
    assert {file: hashes(tmp_path)[file] for file in tables} == {file: tables[file]["sha256"] for file in tables}


@pytest.mark.parametrize("name", SAMPLES)
def test_same_seed_same_bytes_whatever_the_threads_and_another_seed_others(tmp_path, name):
    sample, size = SAMPLES[name]
    for folder, seed in (("a", 1), ("c", 2)):
        sample.write_sample(tmp_path / folder, size, seed=seed)
    environment = os.environ | {"POLARS_MAX_THREADS": "1", "PYTHONPATH": f"{ROOT / 'scripts'}:{ROOT / 'tools/bench'}"}
    subprocess.run([sys.executable, "-c", WRITE.format(name, size)], cwd=tmp_path, env=environment, check=True)
    first, same_seed, other_seed = (hashes(tmp_path / folder) for folder in "abc")
    assert first == same_seed
    assert all(first[file] != other_seed[file] for file in first if file != "cluster_machine_list")


@pytest.mark.parametrize("name", SAMPLES)
def test_too_small_a_sample_and_a_bad_seed_are_refused(tmp_path, name):
    sample, smallest = SAMPLES[name]
    with pytest.raises(StudyError, match=f"ask for {smallest:,} or more"):
        sample.write_sample(tmp_path / "x", 10)
    with pytest.raises(StudyError, match="seed"):
        sample.write_sample(tmp_path / "x", smallest, seed=-1)
    assert not (tmp_path / "x").exists()
