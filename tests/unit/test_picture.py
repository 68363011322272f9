"""A picture has the same bytes on any machine and after any other picture."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import altair as alt
import pytest
import ttf.display.charts.figure  # noqa: F401 registers the look of every chart
from ttf.display.charts.glyphs import SPELLED, spell_missing_glyphs
from ttf.display.charts.saving import render_drawing, render_picture, renumber_ids, static_picture

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
# Draw as the job does, in a separate process, because fonts are searched once per process.
DRAW = """
import json
import sys
from pathlib import Path

sys.path.append(sys.argv[1])
from ttf.display.charts.saving import render_picture
from ttf.engine.process.fonts import hide_system_fonts

hide_system_fonts()
for svg in map(Path, sys.argv[2:]):
    spec = json.loads(svg.with_suffix(".vl.json").read_text(encoding="utf-8"))
    svg.write_text(render_picture(spec), encoding="utf-8")
"""


def chart_spec(name: str, number: int = 2) -> str:
    """Build a chart with a clip path and a gradient; its axis shows the name."""
    data = alt.Data(values=[{"name": f"{name} {i}", "value": i + 1} for i in range(number)])
    chart = alt.Chart(data).mark_point(clip=True).encode(x="value:Q", y="name:N", color="value:Q")
    return json.dumps(chart.to_dict())


def draw_pictures(folder: Path, specs: dict[str, str], environment: dict[str, str]) -> dict[str, bytes]:
    """Draw each spec in this order, as the rule does; return the pictures by name."""
    folder.mkdir()
    for name, spec in specs.items():
        (folder / f"{name}.vl.json").write_text(spec, encoding="utf-8")
    svgs = [f"{name}.svg" for name in specs]
    (temporary := folder / "temporary").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS), "TMPDIR": str(temporary), **environment}
    subprocess.run([sys.executable, "-c", DRAW, str(SCRIPTS), *svgs], cwd=folder, env=environment, check=True)
    assert not list(temporary.iterdir())
    return {name: (folder / f"{name}.svg").read_bytes() for name in specs}


def test_a_picture_does_not_depend_on_those_before_it(tmp_path):
    specs = {"a": chart_spec("a"), "b": chart_spec("b", 5), "c": chart_spec("c", 3)}
    pictures = draw_pictures(tmp_path / "forth", specs, {})
    assert pictures == draw_pictures(tmp_path / "back", dict(reversed(specs.items())), {})
    for svg in pictures.values():
        assert b'<clipPath id="clip0"' in svg
        assert b'<linearGradient id="gradient_' in svg


def test_a_picture_does_not_depend_on_the_fonts_of_the_machine(tmp_path):
    # For a sign that its own fonts lack, the library uses a system font, which sets the width of the picture.
    fonts = find_fonts_with("✈")
    if not fonts:
        pytest.skip("no system font has a sign that the fonts of vl-convert lack")
    specs = {"signs": chart_spec("✈✈✈✈")}
    pictures = []
    for name, folders in {"none": [tmp_path / "empty"], "some": fonts}.items():
        config = tmp_path / f"{name}.conf"
        config.write_text(f"<fontconfig>{''.join(f'<dir>{folder}</dir>' for folder in folders)}</fontconfig>")
        pictures.append(draw_pictures(tmp_path / name, specs, {"FONTCONFIG_FILE": str(config)}))
    assert pictures[0] == pictures[1]
    assert str(tmp_path).encode() not in pictures[0]["signs"]


@pytest.mark.parametrize("script", ["draw_charts", "publish_site"])
def test_every_script_that_draws_hides_the_fonts_of_the_machine(script):
    assert "    hide_system_fonts()\n" in (SCRIPTS / f"{script}.py").read_text(encoding="utf-8")


def find_fonts_with(sign: str) -> list[Path]:
    """Return the folders of the system fonts that have the sign."""
    if not shutil.which("fc-list"):
        return []
    command = ["fc-list", f":charset={ord(sign):x}", "file"]
    font_lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted({Path(line.rstrip(": ")).parent for line in font_lines})


def test_only_ids_are_renumbered():
    svg = (
        '<svg class="marks"><g clip-path="url(#clip7)" aria-label="url(#clip7) id=&quot;clip7&quot;">'
        '<text fill="#000">id="clip7" fill="url(#clip7)"</text></g><path d="M0" fill="url(#gradient_7)"/>'
        '<g clip-path="url(#clip9)"/><defs><clipPath id="clip7"/><clipPath id="clip9"/>'
        '<linearGradient id="gradient_7" x1="0"/></defs></svg>'
    )
    assert renumber_ids(svg) == (
        '<svg class="marks"><g clip-path="url(#clip0)" aria-label="url(#clip7) id=&quot;clip7&quot;">'
        '<text fill="#000">id="clip7" fill="url(#clip7)"</text></g><path d="M0" fill="url(#gradient_1)"/>'
        '<g clip-path="url(#clip2)"/><defs><clipPath id="clip0"/><clipPath id="clip2"/>'
        '<linearGradient id="gradient_1" x1="0"/></defs></svg>'
    )


# Compare the pixels of each character with those of a character that no font has.
PROBE = """
import sys, unicodedata
sys.path.append(sys.argv[1])
from ttf.display.charts.glyphs import has_missing_glyphs
from ttf.engine.process.fonts import hide_system_fonts
hide_system_fonts()
import typst, vl_convert

def render_pixels(code):
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="30">'
    text = f'<text x="5" y="20" font-family="Liberation Sans"  font-size="12px">&#{code};</text>'
    return vl_convert.svg_to_png(f"{svg}{text}</svg>", scale=1)

codes = [code for code in range(0x20, 0x3000) if unicodedata.category(chr(code))[0] in "LMNPS"]
codes = [code for code in codes if not has_missing_glyphs(chr(code))]
assert len(codes) > 1500
page = '#set page(width: 30pt, height: 30pt, margin: 4pt)\\n#set text(font: "Libertinus Serif", size: 12pt)\\n'
pages = (f'#"\\\\u{{{code:x}}}"\\n' for code in (0x10FFFD, *codes))
pages = (page + "#pagebreak()\\n".join(pages)).encode()
box_page, *code_pages = typst.compile(pages, ignore_system_fonts=True, format="png", ppi=72)
box = render_pixels(0x10FFFD)
print([hex(code) for code, png in zip(codes, code_pages, strict=True) if box_page == png or render_pixels(code) == box])
"""


def test_every_character_that_is_not_spelled_out_has_a_font():
    process = subprocess.run([sys.executable, "-c", PROBE, str(SCRIPTS)], capture_output=True, text=True, check=False)
    assert (process.stdout, process.stderr) == ("[]\n", "")


NAMES = ["张伟", "مح", "दे", "🚀", "Жуков", "Müller"]


def test_names_without_a_font_are_text_in_a_browser_and_spelled_out_elsewhere(tmp_path):
    values = [{"name": name, "value": 1} for name in NAMES]
    chart = alt.Chart(alt.Data(values=values)).mark_point().encode(x="value:Q", y="name:N").to_json()
    picture = tmp_path / "users.svg"
    picture.with_suffix(".vl.json").write_text(chart, encoding="utf-8")
    picture.write_text(render_picture(json.loads(chart)), encoding="utf-8")
    browser_svg, still_svg = picture.read_text(encoding="utf-8"), static_picture(picture)
    assert [f">{name}</text>" in browser_svg for name in NAMES] == [True] * len(NAMES)
    assert [f">{spell_missing_glyphs(name)}</text>" in still_svg for name in NAMES] == [True] * len(NAMES)
    assert [name in still_svg for name in NAMES] == [False] * 4 + [True] * 2
    assert ">[U+5F20 U+4F1F]</text>" in still_svg
    assert (SPELLED in browser_svg, SPELLED in still_svg) == (False, True)


def test_a_label_has_the_width_that_a_browser_needs():
    """A Chinese sign is as wide as it is high; the box that replaces it is half as wide."""

    def picture_width(name: str) -> float:
        return float(re.search(r'width="([\d.]+)"', render_drawing(json.loads(chart_spec(name))))[1])

    assert picture_width("张伟王芳李娜") - picture_width("") >= 6 * 10
