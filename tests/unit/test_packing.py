"""The charts of the page and the program that draws them take little room and come back as they were."""

import base64
import json
import zlib
from types import SimpleNamespace

import vl_convert
from ttf.analyses.catalogue import rooms
from ttf.page.render.packing import as_json, chart_program, deflated, packed


def test_the_look_and_the_title_are_the_pages_and_numbers_are_as_long_as_can_be_seen():
    data = {"d": [{"x": 1 / 3, "n": 1234567}]}
    about = {"$schema": "v6", "title": {"text": "t"}, "config": {"axis": {}}}
    columns = {"rows": 1, "columns": {"n": [1234567], "x": [0.33333]}}
    assert packed({"p": about | {"mark": "line", "datasets": data}}) == {
        "p": {"mark": "line", "datasets": {"d": columns}}
    }


def test_text_of_a_trace_cannot_end_the_script():
    hostile = "</script><script>broken=1</script>\u2028{{< include /etc/passwd >}}<!--"
    text = as_json(packed({"p": {"datasets": {"d": [{"s": hostile}]}}}))
    assert "<" not in text
    assert "\u2028" not in text
    assert json.loads(text)["p"]["datasets"]["d"]["columns"] == {"s": [hostile]}


def test_the_program_of_the_charts_is_made_once_for_an_environment(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda: made.append("a\r\n\u00e9") or made[-1])
    (tmp_path / "file").touch()
    assert chart_program(tmp_path / "file" / "share") == made[0]  # where it cannot be written
    folder = tmp_path / "environment" / "share"
    assert chart_program(folder) == chart_program(folder) == made[0]
    assert len(made) == 2
    # Of other packages it is another program.
    monkeypatch.setattr("ttf.page.render.packing.version", lambda name: "0")
    assert chart_program(folder) == made[0]
    assert (len(made), len(list(folder.iterdir()))) == (3, 2)


def test_a_program_comes_back_and_cannot_end_its_element():
    program = "let a = '</script>';\n" * 50
    text = deflated(program)
    assert "<" not in text
    assert len(text) < len(program) / 2
    assert zlib.decompress(base64.b64decode(text)).decode() == program


def test_the_tables_of_a_chart_are_named():
    declared = rooms()
    of_jobs = SimpleNamespace(has_jobs=True, strata=[])
    assert declared["fit_mttf"].charts(of_jobs)["survival_by_gpu_count"] == ["survival", "survival_summary"]
    assert declared["correlate"].charts["factors_of_run_time"] == ["runtime_by_group", "correlations"]
    assert declared["measure_losses"].charts["gpu_hours_by_size"] == "lost_work"
