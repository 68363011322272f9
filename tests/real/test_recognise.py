"""The folders of the real data: those of a trace are recognised as it, and the others refused."""

import pytest
from of_formats import FORMATS
from study.config import DEFAULTS, TRACES_FILE
from study.first_lines import find_wrong_headers
from study.messages import ConfigError
from study.recognise import format_configuration, recognise
from study.study import Study
from study.yaml_files import load_yaml, parse_yaml
from study_runs import ROOT

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
KNOWN = {name: name for name in ("openb", "lanl", "titan", "infinitehbd", "eagle")} | {"alibaba-ssd": "alibaba_ssd"}
OTHERS = {
    "pai": "  pai2020: the table instance is missing, expected pai_instance_table.csv.",
    "gcm-sacct": "  sacct: the table record would include other files: ",
    "hpc-ai-failure-survey": "not even approximately",
    "titan/gc_summary_loc.csv": "  titan: gc_summary_loc.csv is not one of its tables.",
}


def there(shared_data, path):
    if not (shared_data / path).exists():
        pytest.skip(f"{path} is not among the real data")
    return shared_data / path


@pytest.mark.parametrize("path", TRACES)
def test_a_trace(path, shared_data):
    found = recognise(there(shared_data, path))
    layers = [("config.yaml", load_yaml(DEFAULTS)), ("my.yaml", parse_yaml(format_configuration(found), "my.yaml"))]
    (trace,) = Study(layers, ROOT).traces.values()
    assert (found.format, list(trace.raw_files)) == TRACES[path]
    # Where the registry has a trace of the name, the folder is read as it, with its source and licence.
    assert (found.name in load_yaml(ROOT / TRACES_FILE)) == (path in KNOWN)
    assert found.name == KNOWN.get(path, found.name)
    assert not find_wrong_headers(trace.name, trace.entry, trace.raw_files, FORMATS[found.format])


@pytest.mark.parametrize("path", OTHERS)
def test_data_of_other_things(path, shared_data):
    with pytest.raises(ConfigError) as error:
        recognise(there(shared_data, path))
    assert OTHERS[path] in str(error.value)
