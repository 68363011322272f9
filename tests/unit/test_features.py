"""The features of a job: units, groups and labels."""

import polars as pl
import pytest
from ttf.stats.job_features import FEATURES, select_features

FEATURE_BY_NAME = {feature.name: feature for feature in FEATURES}


def labels(name: str, values: list) -> list[str]:
    feature = FEATURE_BY_NAME[name]
    keys = pl.DataFrame({feature.column: values}).select(feature.group_key()).to_series()
    return feature.labels(keys).to_list()


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("gpu_request", [500, 333, 1000, 0], ["50", "33.3", "100", "0"]),
        ("cpu_request", [6000, 5], ["600", "0.5"]),
        ("memory_request", [30000, 1024, 1], ["29.296875", "1", "0.0009765625"]),
        ("gpu_type", ["V100M16|V100M32", "T4"], ["V100M16|V100M32", "T4"]),
        ("gpu_utilisation", [0, 4, 5, 14, 15], ["0", "0", "1", "1", "2"]),
        ("memory_usage", [511, 512, 1535, 1536], ["0", "1", "1", "2"]),
    ],
)
def test_labels_have_readable_units(name, values, expected):
    assert labels(name, values) == expected


def test_a_missing_value_has_no_group():
    for feature in FEATURES:
        dtype = pl.Int64 if feature.is_numeric else pl.String
        frame = pl.DataFrame({feature.column: [None]}, schema={feature.column: dtype})
        assert frame.select(feature.group_key()).item() is None


def test_measured_features_need_their_column():
    requests = pl.DataFrame(schema=dict.fromkeys(["size", "gpu_type", "gpu_milli", "cpu_milli", "mem_mib"]))
    names = [feature.name for feature in select_features(requests)]
    assert names == ["gpu_type", "gpu_request", "cpu_request", "memory_request", "size"]
    measured = requests.with_columns(cpu_used_milli=pl.lit(None))
    assert select_features(measured)[-1].name == "cpu_usage"
