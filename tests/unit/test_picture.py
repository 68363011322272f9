"""A picture has the same bytes on any machine and after any other picture."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import altair as alt
import pytest
import ttf.charts.figure  # noqa: F401 registers the look of every chart
from ttf.charts.saving import renumbered

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
# As the entry draws, in a process of its own: fonts are looked for once in a process.
DRAW = """
import sys
from pathlib import Path

sys.path.append(sys.argv[1])
from ttf.charts.saving import picture_of
from ttf.fonts import hide_system_fonts

hide_system_fonts()
for svg in map(Path, sys.argv[2:]):
    svg.write_text(picture_of(svg.with_suffix(".vl.json").read_text(encoding="utf-8")), encoding="utf-8")
"""


def spec_of(name: str, number: int = 2) -> str:
    """A chart with a clip path and a gradient, and the name on an axis."""
    data = alt.Data(values=[{"name": f"{name} {i}", "value": i + 1} for i in range(number)])
    chart = alt.Chart(data).mark_point(clip=True).encode(x="value:Q", y="name:N", color="value:Q")
    return json.dumps(chart.to_dict())


def drawn(folder: Path, specs: dict[str, str], environment: dict[str, str]) -> dict[str, bytes]:
    """Name -> the picture that the rule draws of each, in this order."""
    folder.mkdir()
    for name, spec in specs.items():
        (folder / f"{name}.vl.json").write_text(spec, encoding="utf-8")
    svgs = [f"{name}.svg" for name in specs]
    (left := folder / "temporary").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS), "TMPDIR": str(left), **environment}
    subprocess.run([sys.executable, "-c", DRAW, str(SCRIPTS), *svgs], cwd=folder, env=environment, check=True)
    assert not list(left.iterdir())
    return {name: (folder / f"{name}.svg").read_bytes() for name in specs}


def test_a_picture_does_not_depend_on_those_before_it(tmp_path):
    specs = {"a": spec_of("a"), "b": spec_of("b", 5), "c": spec_of("c", 3)}
    forth = drawn(tmp_path / "forth", specs, {})
    assert forth == drawn(tmp_path / "back", dict(reversed(specs.items())), {})
    for svg in forth.values():
        assert b'<clipPath id="clip0"' in svg
        assert b'<linearGradient id="gradient_' in svg


def test_a_picture_does_not_depend_on_the_fonts_of_the_machine(tmp_path):
    # For a sign that its own fonts lack the library takes one of the machine's, and the picture is as wide as that.
    fonts = fonts_with("✈")
    if not fonts:
        pytest.skip("no font of this machine has a sign that those of vl-convert lack")
    specs = {"signs": spec_of("✈✈✈✈")}
    pictures = []
    for name, folders in {"none": [tmp_path / "empty"], "some": fonts}.items():
        config = tmp_path / f"{name}.conf"
        config.write_text(f"<fontconfig>{''.join(f'<dir>{folder}</dir>' for folder in folders)}</fontconfig>")
        pictures.append(drawn(tmp_path / name, specs, {"FONTCONFIG_FILE": str(config)}))
    assert pictures[0] == pictures[1]
    assert str(tmp_path).encode() not in pictures[0]["signs"]


@pytest.mark.parametrize("script", ["draw_charts", "publish_site"])
def test_every_script_that_draws_hides_the_fonts_of_the_machine(script):
    assert "    hide_system_fonts()\n" in (SCRIPTS / f"{script}.py").read_text(encoding="utf-8")


def fonts_with(sign: str) -> list[Path]:
    """Folders of fonts of this machine that have the sign."""
    if not shutil.which("fc-list"):
        return []
    command = ["fc-list", f":charset={ord(sign):x}", "file"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted({Path(line.rstrip(": ")).parent for line in found})


def test_only_names_are_renumbered():
    svg = (
        '<svg class="marks"><g clip-path="url(#clip7)" aria-label="url(#clip7) id=&quot;clip7&quot;">'
        '<text fill="#000">id="clip7" fill="url(#clip7)"</text></g><path d="M0" fill="url(#gradient_7)"/>'
        '<g clip-path="url(#clip9)"/><defs><clipPath id="clip7"/><clipPath id="clip9"/>'
        '<linearGradient id="gradient_7" x1="0"/></defs></svg>'
    )
    assert renumbered(svg) == (
        '<svg class="marks"><g clip-path="url(#clip0)" aria-label="url(#clip7) id=&quot;clip7&quot;">'
        '<text fill="#000">id="clip7" fill="url(#clip7)"</text></g><path d="M0" fill="url(#gradient_1)"/>'
        '<g clip-path="url(#clip2)"/><defs><clipPath id="clip0"/><clipPath id="clip2"/>'
        '<linearGradient id="gradient_1" x1="0"/></defs></svg>'
    )
