"""Embedded samples equal the generators' output and unpack to the tables that their formats declare."""

from pathlib import Path

import numpy as np
import pytest
from format_tables import FORMATS
from samples.draws import hex_ids
from samples.pack import EMBEDDED, Identifiers, pack_table
from study_runs import ROOT
from ttf.engine.errors import StudyError
from ttf.raw.packed_samples import table_text, unpack_sample
from ttf.study.trace_files import list_sample_files


def test_formats_with_a_sample_have_a_generator():
    assert {name for name, format in FORMATS.items() if "sample" in format} == set(EMBEDDED)


@pytest.mark.parametrize("name", EMBEDDED)
def test_a_sample_unpacks_to_the_files_that_its_format_declares(tmp_path, name):
    sample = FORMATS[name]["sample"]
    count = unpack_sample(ROOT / sample["packed"], sample["sha256"], tmp_path)
    names = list_sample_files("t", {"format": name}, FORMATS)
    expected = sorted(Path(file).name for files in names.values() for file in files)
    assert sorted(path.name for path in tmp_path.iterdir()) == expected
    assert count == len(expected)


def test_an_edited_file_is_an_error(tmp_path):
    sample = FORMATS["sacct"]["sample"]
    path = tmp_path / "sacct.json"
    path.write_bytes((ROOT / sample["packed"]).read_bytes() + b" ")
    with pytest.raises(StudyError, match=r"sacct\.json: the SHA-256 is \w{64}; expected \w{64}\. The file was edited"):
        unpack_sample(path, sample["sha256"], tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_each_kind_of_column_unpacks_to_the_original_bytes():
    ids = Identifiers(7, {1: 24, 2: 64}, 999)
    first, second = (hex_ids(7, kind, np.arange(300), digits).to_list() for kind, digits in ((1, 24), (2, 64)))
    columns = [
        ("ids", first),
        ("ids", [*second[:298], "", "another"]),
        ("numbers", [str(number * number % 977) for number in range(300)]),
        ("numbers", [*(str(number * 7919 % 100_003 / 1000) for number in range(299)), "NA"]),
        ("numbers", ["", *(f"{1_500_000_000 - 61 * number}.0" for number in range(299))]),
        ("text", ["007", *("ab" * number for number in range(299))]),
    ]
    kinds, values = zip(*columns, strict=True)
    text = "\n".join(map(",".join, [kinds, *zip(*values, strict=True)])) + "\n"
    table = pack_table(text.encode(), ids)
    assert table_text(table) == text.encode()
    assert tuple(column["kind"] for column in table["columns"]) == kinds
