"""Drawings within the page: no styles the page sets itself, the page's colours, and unique ids."""

import re
import xml.etree.ElementTree as ET

import pytest
from ttf.display.charts.figure import Study, empty_figure, fit_width, make_chart, make_figure
from ttf.display.charts.inline import extract_drawing, make_page_element
from ttf.display.charts.saving import render_drawing, render_picture
from ttf.display.charts.theme import FAILURE, LIGHT

HOSTILE = "</svg><script>x</script> & \"'"
SVG = "{http://www.w3.org/2000/svg}"


def example_chart(narrow: bool = False):
    study = Study(narrow=narrow)
    base = make_chart("rows").encode(x="x:Q", y="y:N", tooltip="y:N")
    marks = (
        base.mark_point(clip=True, color=FAILURE)
        + base.mark_rule()
        + base.mark_text(dy=-9).encode(text="y:N")
        + base.mark_tick()
        + base.mark_circle(opacity=0)
    )
    rows = {"rows": [{"x": number / 3, "y": f"{HOSTILE} {number}"} for number in range(6)]}
    texts = {"title": HOSTILE, "subtitle": "a & b", "caption": "n = 6", "alt_text": "Points."}
    return make_figure(fit_width(marks, study, 200), rows, study, **texts)


def colours(svg: str) -> set[str]:
    values = {
        value
        for element in ET.fromstring(svg).iter()
        for name in ("fill", "stroke", "stop-color", "color", "style")
        if (value := element.get(name)) and not value.startswith("url(")
    }
    return values - {"none"}


@pytest.fixture(scope="module")
def drawing() -> str:
    return render_drawing(example_chart().spec())


def test_all_colours_are_tokens(drawing):
    assert 'fill="white"' not in drawing
    for svg in (drawing, render_drawing(empty_figure("A", "no rows").spec())):
        assert colours(make_page_element(svg, "p", "t", "a")) <= set(LIGHT.values())
    assert FAILURE in make_page_element(drawing, "p", "t", "a")


def test_a_drawing_has_an_escaped_title_and_description(drawing):
    element = ET.fromstring(make_page_element(drawing, "p", HOSTILE, HOSTILE))
    ids = element.get("aria-labelledby").split()
    text_by_id = {child.get("id"): child.text for child in element if child.tag in ("title", "desc")}
    assert [text_by_id[name] for name in ids] == [HOSTILE, HOSTILE]
    assert "<script" not in make_page_element(drawing, "p", HOSTILE, HOSTILE)


def test_paths_are_shortened_without_moving():
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><path stroke="#b03a0c" '
        'd="M0,1L5.04,1L5.04,2.26L7,4L7,4L8,4ZM3,4L3,9"/><path stroke="#b03a0c" d="M1,1L2,2C1,1,1,1,2,2L3,2"/></svg>'
    )
    paths = [path.get("d") for path in ET.fromstring(make_page_element(svg, "p", "t", "a")).iter("path")]
    assert paths == ["M0,1H5V2.3L7,4H8ZM3,4V9", "M1,1L2,2C1,1,1,1,2,2L3,2"]


def test_two_drawings_of_a_page_share_no_ids(drawing):
    first, second = (make_page_element(drawing, name, "t", "a") for name in ("p", "q"))
    ids = [set(re.findall(r' id="([^"]*)"', text)) for text in (first, second)]
    assert not ids[0] & ids[1]
    for text, names in zip((first, second), ids, strict=True):
        references = set(re.findall(r"url\(#([^)]*)\)", text))
        assert references and references <= names


def test_a_picture_has_a_title_and_bare_restores_the_drawing(drawing):

    picture = render_picture(example_chart().spec())
    texts = [element.text for element in ET.fromstring(picture) if element.tag == f"{SVG}text"]
    assert texts == [HOSTILE, "a & b"]
    assert ET.fromstring(extract_drawing(picture)).attrib | {"y": None} == ET.fromstring(drawing).attrib | {"y": None}
    assert make_page_element(extract_drawing(picture), "p", "t", "a") == make_page_element(drawing, "p", "t", "a")
