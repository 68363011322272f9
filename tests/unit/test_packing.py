"""Charts and the program that draws them are packed compactly and unpack unchanged."""

import base64
import json
import zlib

import vl_convert
from ttf.page.render.packing import chart_program, deflate, pack_charts, to_json


def test_a_packed_chart_has_no_theme_or_title_and_rounded_numbers():
    data = {"d": [{"x": 1 / 3, "n": 1234567}]}
    theme = {"$schema": "v6", "title": {"text": "t"}, "config": {"axis": {}}}
    columns = {"rows": 1, "columns": {"n": [1234567], "x": [0.33333]}}
    assert pack_charts({"p": theme | {"mark": "line", "datasets": data}}) == {
        "p": {"mark": "line", "datasets": {"d": columns}}
    }


def test_text_of_a_trace_cannot_close_the_script():
    hostile = "</script><script>broken=1</script>\u2028{{< include /etc/passwd >}}<!--"
    text = to_json(pack_charts({"p": {"datasets": {"d": [{"s": hostile}]}}}))
    assert "<" not in text
    assert "\u2028" not in text
    assert json.loads(text)["p"]["datasets"]["d"]["columns"] == {"s": [hostile]}


def test_the_chart_program_is_built_once_per_environment(tmp_path, monkeypatch):
    bundles = []
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda: bundles.append("a\r\n\u00e9") or bundles[-1])
    (tmp_path / "file").touch()
    assert chart_program(tmp_path / "file" / "share") == bundles[0]  # a path that cannot be written
    folder = tmp_path / "environment" / "share"
    assert chart_program(folder) == chart_program(folder) == bundles[0]
    assert len(bundles) == 2
    # Other package versions have another program.
    monkeypatch.setattr("ttf.page.render.packing.version", lambda name: "0")
    assert chart_program(folder) == bundles[0]
    assert (len(bundles), len(list(folder.iterdir()))) == (3, 2)


def test_a_compressed_program_unpacks_and_cannot_close_its_element():
    program = "let a = '</script>';\n" * 50
    text = deflate(program)
    assert "<" not in text
    assert len(text) < len(program) / 2
    assert zlib.decompress(base64.b64decode(text)).decode() == program
