"""The charts of the page and the program that draws them take little room and come back as they were."""

import base64
import json
import zlib
from types import SimpleNamespace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ttf.page.packing import as_json, deflated, packed, unpacked
from ttf.rooms import rooms

# What the rows of charts hold; a blank value comes back as one that is not there.
values = st.one_of(st.integers(-(2**50), 2**50), st.booleans(), st.text(max_size=8), st.just("aaaaaaaa"))
rows = st.lists(st.dictionaries(st.sampled_from(["a", "b", "c"]), values, max_size=3), max_size=12)
nodes = st.recursive(
    st.one_of(st.none(), values),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["x", "y"]), inner, max_size=2),
    max_leaves=6,
)
specs = st.builds(lambda mark, data: {"layer": mark, "datasets": {"rows": data}}, nodes, rows)


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from("pqr"), specs, max_size=3))
def test_what_is_packed_comes_back(charts):
    small = json.loads(json.dumps(packed(charts)))
    assert unpacked(small["charts"], small["shared"]) == charts


def test_the_look_and_the_title_are_the_pages_and_numbers_are_as_long_as_can_be_seen():
    data = {"d": [{"x": 1 / 3, "n": 1234567}]}
    about = {"$schema": "v6", "title": {"text": "t"}, "config": {"axis": {}}}
    small = packed({"p": about | {"mark": "line", "datasets": data}})
    back = unpacked(small["charts"]["p"], small["shared"])
    assert back == {"mark": "line", "datasets": {"d": [{"x": 0.33333, "n": 1234567}]}}


def test_what_charts_say_alike_stands_there_once():
    axis = {"title": "Time since the start of the run", "values": list(range(40))}
    charts = {f"p{n}": {"mark": "line", "encoding": {"x": axis, "size": n}} for n in range(50)}
    text = json.dumps(packed(charts))
    assert text.count("Time since") == 1
    assert len(text) < 0.3 * len(json.dumps(charts))


def test_text_of_a_trace_cannot_end_the_script():
    hostile = "</script><script>broken=1</script>\u2028{{< include /etc/passwd >}}<!--"
    text = as_json(packed({"p": {"datasets": {"d": [{"s": hostile}]}}}))
    assert "<" not in text
    assert "\u2028" not in text
    small = json.loads(text)
    assert unpacked(small["charts"]["p"], small["shared"])["datasets"]["d"] == [{"s": hostile}]


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
