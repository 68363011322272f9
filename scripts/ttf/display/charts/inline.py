"""A drawing as it stands in the page: light, in the colours and the font of the page, and told in words."""

import re
import xml.etree.ElementTree as ET

from ttf.display.charts.theme import INK, LIGHT

_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
_POINT = re.compile(r"([ML])(-?[\d.]+),(-?[\d.]+)")
_POLYGON = re.compile(rf"(?:{_POINT.pattern}|Z)+")
_REFERENCE = re.compile(r"url\(#([^)]*)\)")
# Attributes that hold places in px, which a tenth of one is exact enough for.
_PLACES = {"d", "transform", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "cx", "cy", "r", "width", "height"}
# What the page says, or what nobody does: the drawing is one image with words of its own.
_DROPPED = {"class", "role", "pointer-events", "font-family", "display"}
_DEFAULTS = {
    "opacity": "1",
    "stroke-opacity": "1",
    "fill-opacity": "1",
    "stroke-width": "1",
    "text-anchor": "start",
    "font-weight": "normal",
    "transform": "translate(0,0)",
}
# Said once by a group for all that stands in it.
_INHERITED = ("fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-weight", "text-anchor")
_FONT_SIZE = "12px"
# As libraries write them where nobody has chosen.
_NAMED = {"white": LIGHT["surface"], "#fff": LIGHT["surface"], "black": INK, "#000": INK, "#000000": INK}


def bare(picture: str) -> str:
    """The drawing that stands in a picture below its title; a drawing without one is given back."""
    inside = picture.find("<svg ", 1)
    return picture if inside < 0 else picture.strip()[inside:].removesuffix("</svg>") + "\n"


def inline(svg: str, identifier: str, title: str, alt: str) -> str:
    """The picture `svg` (`bare` of a published one) as an element of the page.

    It is as wide as it was drawn; the style of the page makes it narrower with the page. identifier: of the page, of
    which the ids of its parts are made. title, alt: texts. The colours stay those of the light page, which
    `theme.tokens_style` maps.
    """
    drawing = ET.fromstring(svg)
    width, height = (round(float(drawing.get(side))) for side in ("width", "height"))
    parts = [part for child in drawing for part in _light(child, identifier)]
    about = {
        "viewBox": f"0 0 {width} {height}",
        "width": f"{width}",
        "font-size": _FONT_SIZE,
        "role": "img",
        "aria-labelledby": f"{identifier}-title {identifier}-desc",
    }
    element = ET.Element("svg", about)
    for tag, text in (("title", title), ("desc", alt)):
        ET.SubElement(element, tag, {"id": f"{identifier}-{tag}"}).text = text
    element.extend(parts)
    # A ">" of a text or of an attribute is escaped.
    return ET.tostring(element, encoding="unicode").replace(" />", "/>")


def _light(element: ET.Element, identifier: str) -> list[ET.Element]:
    """What is left of an element: nothing, itself, or, of a group that says nothing, what stands in it."""
    if _unseen(element):
        return []
    children = [part for child in element for part in _light(child, identifier)]
    tag = element.tag.rpartition("}")[2]
    said = {
        name: _short(name, value, identifier)
        for name, value in element.items()
        if name not in _DROPPED and not name.startswith(("aria-", "{"))
    }
    defaults = _DEFAULTS | ({"x2": "0", "y2": "0"} if tag == "line" else {})
    attributes = {name: value for name, value in said.items() if defaults.get(name) != value}
    if attributes.get("font-size") == _FONT_SIZE and tag == "text":
        del attributes["font-size"]
    if tag == "g":
        if not children:
            return []
        attributes |= _common(children)
        if not attributes:
            return children
    light = ET.Element(tag, attributes)
    light.text = element.text
    light.extend(children)
    return [light]


def _unseen(element: ET.Element) -> bool:
    if element.get("display") == "none" or element.get("opacity") == "0" or element.get("d") == "":
        return True
    # The ground of a view without a colour.
    return element.get("class") == "background" and not {"fill", "stroke"}.intersection(element.keys())


def _short(name: str, value: str, identifier: str) -> str:
    if name in _PLACES:
        rounded = _NUMBER.sub(lambda at: f"{float(at[0]):.1f}".removesuffix(".0"), value)
        return _stepped(rounded) if name == "d" and _POLYGON.fullmatch(rounded) else rounded
    if name == "id":
        return f"{identifier}-{value}"
    if name in ("fill", "stroke", "stop-color"):
        value = _NAMED.get(value.lower(), value if value.startswith("url") else value.lower())
    return _REFERENCE.sub(rf"url(#{identifier}-\1)", value)


def _stepped(path: str) -> str:
    """A path of straight lines with what goes along an axis said by one number: most curves here are steps."""
    last = ("", "")

    def shorter(at: re.Match) -> str:
        nonlocal last
        (x, y), before = (at[2], at[3]), last
        last = x, y
        if at[1] == "M" or (x != before[0] and y != before[1]):
            return at[0]
        return "" if last == before else f"V{y}" if x == before[0] else f"H{x}"

    return _POINT.sub(shorter, path)


def _common(children: list[ET.Element]) -> dict[str, str]:
    """What all children say alike, taken from them; but what a child leaves to its group stays as it is."""
    found = {}
    for name in _INHERITED:
        values = {child.get(name) for child in children}
        if len(children) > 1 and len(values) == 1 and None not in values:
            found[name] = children[0].get(name)
            for child in children:
                del child.attrib[name]
    return found
