"""The keys node_logs and node_log_zone of a trace, and logs that are recognised beside the tables of jobs."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from ttf.commands.run import resolve_arguments, write_configuration
from ttf.study import studies
from ttf.study.configuration.config import DEFAULTS
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.yaml_files import load_yaml
from ttf.study.recognition.recognise import recognise
from ttf.study.study import Study

ROOT = Path(__file__).resolve().parents[2]
LINE = "2025-03-01T08:00:00+0000 n1 kernel: NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.\n"
HEADER = "JobIDRaw|State|Start|End\n1|FAILED|1740816000|1740816100\n"


def make_study(entry, **settings):
    config = {"study": ["mine"], "registry": {"mine": entry}} | settings
    return Study([("config/config.yaml", load_yaml(DEFAULTS)), ("my.yaml", config)])


@pytest.fixture
def dumps(tmp_path):
    folder = tmp_path / "dumps"
    folder.mkdir()
    (folder / "2025.txt").write_text(HEADER)
    return folder


def test_logs_beside_the_dumps_are_recognised(dumps):
    (dumps / "kern.txt").write_text(LINE)
    (dumps / "health.csv").write_text("node,time,code,severity\nn1,1740816000,XID79,high\n")
    (dumps / "README.txt").write_text(LINE)
    (dumps / "logs").mkdir()
    (dumps / "logs" / "n1.log").write_text("[Sat Mar  1 08:00:00 2025] usb 1-1: new\n")
    (dumps / "other").mkdir()
    (dumps / "other" / "notes.md").write_text("nothing\n")
    trace = recognise(dumps)
    names = ("health.csv", "kern.txt", "logs")
    assert trace.entry == {"format": "sacct", "folder": str(dumps), "node_logs": [f"{dumps}/{name}" for name in names]}
    assert trace.explanation.splitlines()[-1] == "Logs of nodes: health.csv, kern.txt, logs."
    study = make_study(trace.entry)
    assert study.traces["mine"].raw_files == {"record": [f"{dumps}/2025.txt"]}
    assert study.traces["mine"].node_logs == [f"{dumps}/{name}" for name in ("health.csv", "kern.txt", "logs/n1.log")]
    assert not [note for note in study.notes if "kern" in note or "health" in note or "logs" in note]


def test_a_log_added_to_a_known_study_is_picked_up(dumps, monkeypatch, capsys):
    monkeypatch.chdir(dumps.parent)
    file = Path(write_configuration(Path("dumps")))
    studies.remember_study("dumps", SimpleNamespace(configfiles=[file], config_args=[]))
    (dumps / "kern.txt").write_text(LINE)
    arguments = resolve_arguments(study="", config="", trace="", data="")
    assert arguments == ["--configfile", str(file)]
    assert load_yaml(file)["registry"]["dumps"]["node_logs"] == ["dumps/kern.txt"]
    assert "edited," not in capsys.readouterr().err
    # Edited by a person, also if only a comment: it stays as it is.
    edited = file.read_text() + "# Mine.\n"
    for change in ("", "survival: {max_steps: 50}\n"):
        file.write_text(edited + change)
        (dumps / "health_events.csv").write_text("node,time,code,severity\nn1,1740816000,XID79,high\n")
        (dumps / "gpu2.log").write_text(LINE)
        write_configuration(Path("dumps"))
        assert file.read_text() == edited + change
        lines = capsys.readouterr().err.splitlines()
        assert f"{file} was edited, and is used as it stands." in lines
        assert "  health_events: dumps/health_events.csv" in lines
        assert "  node_logs: [dumps/kern.txt, dumps/gpu2.log]" in lines
    studies.forget_study("dumps")
    assert studies.find_data("dumps") is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node_logs": "nowhere.log"}, r"registry.mine.node_logs: nowhere.log: there is no such file"),
        ({"node_logs": "empty"}, "the folder contains no file. Name the folder with the logs."),
        ({"node_logs": "broken"}, "gone.log is a link to nothing; expected a log."),
        ({"node_logs": []}, r"registry.mine.node_logs"),
        ({"node_log_zone": "Europe/Berlim"}, "there is no time zone 'Europe/Berlim'; did you mean Europe/Berlin?"),
        (
            {"format": "openb", "files": {"pods": "2025.txt"}},
            "times of the trace count from an unknown origin, so no log can be compared with it.",
        ),
        ({"format": "slurm_events"}, "errors are compared with jobs, and the format slurm_events has no jobs."),
    ],
)
def test_logs_that_cannot_be_used_are_refused(dumps, monkeypatch, changes, message):
    monkeypatch.chdir(dumps)
    for name in ("empty", "broken"):
        Path(name).mkdir()
    Path("broken/gone.log").symlink_to("nowhere")
    Path("kern.log").write_text(LINE)
    entry = {"format": "sacct", "folder": str(dumps), "node_logs": "kern.log"} | changes
    with pytest.raises(ConfigError) as error:
        make_study(entry)
    assert message in str(error.value)
