"""The number and the time of observed units: registry keys, their errors, and the question if they are missing."""

import pytest
from ttf.study.configuration.config import DEFAULTS
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.yaml_files import load_yaml
from ttf.study.study import Study
from ttf.study.watch import find_watch_problems, read_watch_options

OUTAGE_FORMAT = {"gives": "outages", "unit": "node", "tables": {}}
HBD = {"format": "infinitehbd", "folder": "data"}


def list_problems(clock=None, has_outages=True, format=OUTAGE_FORMAT, **entry):
    entry = {"format": "infinitehbd"} | entry
    return [
        f"{'.'.join(problem.path)}: {problem.text}"
        for problem in find_watch_problems("mine", entry, format, has_outages, clock)
    ]


@pytest.mark.parametrize(
    ("window", "clock", "message"),
    [
        ([0, 348.98], None, ""),
        (["2024-03-30", "2025-03-14"], "UTC", ""),
        ([5, 5], None, "5 is not after 5; the window would be empty."),
        ([5], None, "has 1 items; expected two, the first and the last day, for example [0, 348.98]"),
        ([0, "2024-03-30"], None, "the times of the trace count from an unknown origin; write days on its clock"),
        (["2024-03-30", "2024-02-30"], "UTC", "not a valid date; write two days"),
    ],
)
def test_a_window_is_two_days_in_order(window, clock, message):
    problems = list_problems(clock, nodes=4, window_days=window)
    assert len(problems) == bool(message)
    assert all(line.startswith(f"registry.mine.window_days: {message}") for line in problems)


def test_the_keys_are_for_traces_of_outages_without_exposure():
    (message,) = list_problems(has_outages=False, nodes=4, format={"unit": "pod", "tables": {}})
    assert message == "registry.mine.nodes: needs outages, and this trace of the format infinitehbd has none."
    (message,) = list_problems(nodes=4, format=OUTAGE_FORMAT | {"exposure": True})
    assert message.endswith("the files say which nodes were observed; remove this key.")
    messages = list_problems(nodes=4, window_days=[0, 1], units="units.csv")
    assert [message.endswith("nodes were observed; remove this key.") for message in messages] == [True, True]
    (message,) = list_problems(window_days=[0, 1])
    assert message.endswith("says when nodes were observed; also give their number with nodes.")


def test_dates_are_days_on_the_clock_of_the_trace():
    entry = {"nodes": 4, "window_days": ["1970-01-02", "1970-01-02T12:00:00+00:00"]}
    assert read_watch_options(entry, "America/Denver") == {"nodes": 4, "window_days": [1 + 7 / 24, 1.5]}
    assert read_watch_options({}, None) == {}


def test_missing_nodes_are_asked_for_before_the_first_job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/fault_trace.json").write_text("[]")

    def study(**keys):
        config = {"study": ["mine"], "registry": {"mine": HBD | keys}}
        return Study([("config.yaml", load_yaml(DEFAULTS)), ("my.yaml", config)])

    (question,) = study().notes
    assert question.startswith("registry.mine.nodes: how many nodes were observed, including those without an outage?")
    assert not {"durations", "durations_infra", "exposure"} & study().traces["mine"].products
    complete_study = study(nodes=4)
    assert complete_study.notes == []
    assert complete_study.traces["mine"].products >= {
        "durations",
        "durations_infra",
        "exposure",
        "outages",
        "outage_records",
    }
    with pytest.raises(ConfigError, match=r"^my.yaml: registry.mine.window_days: 5 is not after 5"):
        study(nodes=4, window_days=[5, 5])
