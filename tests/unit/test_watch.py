"""How many units were watched, and when: what the registry may say of it, and what is asked where it does not."""

import pytest
from study.config import DEFAULTS
from study.messages import ConfigError
from study.study import Study
from study.watch import watch_of, watch_problems
from study.yaml_files import load_yaml
from study_runs import ROOT

OF_OUTAGES = {"gives": "outages", "unit": "node"}
HBD = {"format": "infinitehbd", "folder": "data"}


def problems(clock=None, has_outages=True, format=OF_OUTAGES, **entry):
    entry = {"format": "infinitehbd"} | entry
    return [
        f"{'.'.join(problem.path)}: {problem.text}"
        for problem in watch_problems("mine", entry, format, has_outages, clock)
    ]


@pytest.mark.parametrize(
    ("window", "clock", "said"),
    [
        ([0, 348.98], None, ""),
        (["2024-03-30", "2025-03-14"], "UTC", ""),
        ([5, 5], None, "5 is not after 5; the nodes would never be watched."),
        ([5, 1], None, "1 is not after 5; the nodes"),
        ([5], None, "has 1 items; expected two, the first day and the last, for example [0, 348.98]"),
        ([0, "2024-03-30"], None, "the times of the trace count from an origin of their own; write days on its clock"),
        (["2024-03-30", "2024-02-30"], "UTC", "there is no such day; write two of them"),
        (["2024-03-30", "tomorrow"], "UTC", "there is no such day"),
    ],
)
def test_a_window_is_two_days_one_after_the_other(window, clock, said):
    found = problems(clock, nodes=4, window_days=window)
    assert len(found) == bool(said)
    assert all(line.startswith(f"registry.mine.window_days: {said}") for line in found)


def test_they_are_for_traces_of_outages_that_do_not_say_it_themselves():
    (said,) = problems(has_outages=False, nodes=4, format={"unit": "pod"})
    assert said == "registry.mine.nodes: is of traces of outages, and of the format infinitehbd there are none here."
    (said,) = problems(nodes=4, format=OF_OUTAGES | {"exposure": True})
    assert said.endswith("its files say which nodes were watched; leave it out.")
    (said,) = problems(window_days=[0, 1])
    assert said.endswith("says when nodes were watched; say how many there were, too, with nodes.")


def test_dates_are_days_on_the_clock_of_the_trace():
    entry = {"nodes": 4, "window_days": ["1970-01-02", "1970-01-02T12:00:00+00:00"]}
    assert watch_of(entry, "America/Denver") == {"nodes": 4, "window_days": [1 + 7 / 24, 1.5]}
    assert watch_of({}, None) == {}


def test_before_the_first_job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/fault_trace.json").write_text("[]")

    def study(**keys):
        mine = {"study": ["mine"], "registry": {"mine": HBD | keys}}
        return Study([("config.yaml", load_yaml(DEFAULTS)), ("my.yaml", mine)], ROOT)

    (question,) = study().notes
    assert question.startswith("registry.mine.nodes: how many nodes were watched, those without an outage too?")
    assert not {"lives", "lives_infra", "exposure"} & study().traces["mine"].products
    watched = study(nodes=4)
    assert watched.notes == []
    assert watched.traces["mine"].products >= {"lives", "lives_infra", "exposure", "outages", "outage_records"}
    with pytest.raises(ConfigError, match=r"^my.yaml: registry.mine.window_days: 5 is not after 5"):
        study(nodes=4, window_days=[5, 5])
