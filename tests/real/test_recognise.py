"""Folders of real traces are recognised; other data are refused."""

import pytest
from format_tables import FORMATS
from study_runs import ROOT
from ttf.study.configuration.config import DEFAULTS, TRACES_FILE
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.yaml_files import load_yaml, parse_yaml
from ttf.study.recognition.first_lines import find_wrong_headers
from ttf.study.recognition.recognise import format_configuration, recognise
from ttf.study.study import Study

TRACES = {
    "openb": ("openb", ["pods", "nodes"]),
    "lanl": ("lanl", ["outages"]),
    "titan": ("titan", ["stays"]),
    "infinitehbd": ("infinitehbd", ["events"]),
    "alibaba-ssd": ("alibaba_ssd", ["tickets"]),
    "backblaze-2013": ("backblaze", ["days"]),
    "eagle": ("table", ["rows"]),
    "gcm-sacct/sample-sacct-output.txt": ("sacct", ["record"]),
}
TRACE_NAMES = {name: name for name in ("openb", "lanl", "titan", "infinitehbd", "eagle")} | {
    "alibaba-ssd": "alibaba_ssd"
}
REFUSED = {
    "pai": "  pai2020: the table instance is missing, expected pai_instance_table.csv.",
    "gcm-sacct": "  sacct: the table record would include other files: ",
    "hpc-ai-failure-survey": "None tells an outcome or a run time of jobs",
    "titan/gc_summary_loc.csv": "  titan: gc_summary_loc.csv is not one of its tables.",
}


def existing_path(shared_data, path):
    if not (shared_data / path).exists():
        pytest.skip(f"{path} is not among the real data")
    return shared_data / path


@pytest.mark.parametrize("path", TRACES)
def test_a_trace_is_recognised(path, shared_data):
    recognised = recognise(existing_path(shared_data, path))
    layers = [
        ("config.yaml", load_yaml(DEFAULTS)),
        ("my.yaml", parse_yaml(format_configuration(recognised), "my.yaml")),
    ]
    (trace,) = Study(layers).traces.values()
    assert (recognised.format, list(trace.raw_files)) == TRACES[path]
    # If the registry has a trace of this name, the study uses its entry with source and licence.
    assert (recognised.name in load_yaml(ROOT / TRACES_FILE)) == (path in TRACE_NAMES)
    assert recognised.name == TRACE_NAMES.get(path, recognised.name)
    assert not find_wrong_headers(trace.name, trace.entry, trace.raw_files, FORMATS[recognised.format])


@pytest.mark.parametrize("path", REFUSED)
def test_other_data_are_refused(path, shared_data):
    with pytest.raises(ConfigError) as error:
        recognise(existing_path(shared_data, path))
    assert REFUSED[path] in str(error.value)
