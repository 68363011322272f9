"""A GPU type that is picked stands out; the others fade, and nothing changes while none is picked."""

import altair as alt
from ttf.charts.figure import Study, chart_of, figure
from ttf.charts.picking import FADED, Picks

ROWS = [{"x": 1, "type": "A"}, {"x": 2, "type": "<b>'"}]


def drawn(chart: alt.TopLevelMixin) -> dict:
    words = dict.fromkeys(("title", "subtitle", "caption", "alt_text"), "words")
    picks = Picks(("types",), "type", {"A": "A", "<b>'": "<b>'"})
    return figure(chart, {"types": ROWS, "whole": [{"x": 3}]}, Study(), picks=picks, **words).spec(validate=True)


def test_marks_of_the_rows_fade_by_a_parameter():
    layers = chart_of("types").mark_bar(opacity=0.5).encode(x="x:Q") + chart_of("types").mark_line().encode(x="x:Q")
    spec = drawn(layers)
    assert spec["params"] == [{"name": "picked_gpu_type", "value": ""}]
    assert spec["usermeta"]["gpu_types"] == {"A": "A", "<b>'": "<b>'"}
    bar, line = (layer["encoding"]["opacity"] for layer in spec["layer"])
    assert (bar["condition"]["value"], bar["value"]) == (0.5, 0.5 * FADED)
    assert (line["condition"]["value"], line["value"]) == (1, FADED)
    assert bar["condition"]["test"] == "picked_gpu_type === '' || datum['type'] === picked_gpu_type"


def test_other_rows_stay_as_they_are_and_no_text_of_a_trace_is_in_an_expression():
    own, whole = chart_of("types").mark_tick().encode(x="x:Q"), chart_of("whole").mark_rule().encode(x="x:Q")
    spec = drawn(alt.hconcat(own, whole))
    assert "opacity" in spec["hconcat"][0]["encoding"]
    assert "opacity" not in spec["hconcat"][1]["encoding"]
    assert "<b>" not in str(spec["hconcat"])
