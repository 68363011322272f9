"""What the workflow expects of the rule make_sample is what the generators write."""

import importlib
from pathlib import Path

import pytest
from of_formats import FORMATS
from study.config import SAMPLE_SIZES
from study.raw_tables import parts_of, raw_tables, sample_files


def test_formats_with_a_sample_have_a_size():
    assert {name for name, about in FORMATS.items() if "sample" in about} == set(SAMPLE_SIZES)


@pytest.mark.parametrize("name", SAMPLE_SIZES)
def test_the_files_of_a_sample_are_those_that_the_format_declares(tmp_path, name):
    module = importlib.import_module(f"ttf.formats.{name}.sample")
    module.write_sample(tmp_path, **{SAMPLE_SIZES[name]: 1_000, "seed": 3})
    named = sample_files("t", {"format": name}, FORMATS)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        Path(file).name for files in named.values() for file in files
    )


def test_tables_of_a_sample_are_read_and_what_is_beside_them_is_not():
    entry = {"format": "sacct", "generate": {}}
    assert raw_tables("t", entry, FORMATS) == {"record": ["data/t/2025-a.txt", "data/t/2025-b.txt"]}
    assert list(parts_of("t", entry, FORMATS)) == ["2025-a.txt", "2025-b.txt"]
    assert "loss_log" not in raw_tables("t", {"format": "philly", "generate": {}}, FORMATS)
