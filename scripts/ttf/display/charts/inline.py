"""A drawing as an element of the page: small, in the colours and the font of the page, with a text alternative."""

import re
import xml.etree.ElementTree as ET

from ttf.display.charts.theme import INK, LIGHT

_FRACTION = re.compile(r"-?(?:\d+\.\d*|\.\d+)(?:e[-+]?\d+)?|-?\d+e[-+]?\d+")
_POINT = re.compile(r"([ML])(-?[\d.]+),(-?[\d.]+)")
_POLYGON = re.compile(rf"(?:{_POINT.pattern}|Z)+")
_REFERENCE = re.compile(r"url\(#([^)]*)\)")
# Attributes with lengths in px; a tenth of a px is exact enough.
_LENGTHS = {"d", "transform", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "cx", "cy", "r", "width", "height"}
# Attributes that the page sets, or that have no effect: the drawing is one image with its own text.
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
# Attributes that a group can set once for all its children.
_INHERITED = ("fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-weight", "text-anchor")
_FONT_SIZE = "12px"
# Default colours of libraries.
_COLOUR_NAMES = {"white": LIGHT["surface"], "#fff": LIGHT["surface"], "black": INK, "#000": INK, "#000000": INK}


def extract_drawing(picture: str) -> str:
    """Return the drawing below the title of a picture; a drawing without a title is returned unchanged."""
    start = picture.find("<svg ", 1)
    return picture if start < 0 else picture.strip()[start:].removesuffix("</svg>") + "\n"


def make_page_element(svg: str, identifier: str, title: str, alt: str) -> str:
    """Return the picture `svg` (from `extract_drawing`) as an element of the page.

    It has the width of the drawing; the page's style shrinks it with the page. identifier: unique in the page, prefix
    of the ids of its parts. title, alt: texts. The colours stay those of the light page; `theme.tokens_style` maps
    them.
    """
    drawing = ET.fromstring(svg)
    width, height = (round(float(drawing.attrib[side])) for side in ("width", "height"))
    attributes = {
        "viewBox": f"0 0 {width} {height}",
        "width": f"{width}",
        "font-size": _FONT_SIZE,
        "role": "img",
        "aria-labelledby": f"{identifier}-title {identifier}-desc",
    }
    element = ET.Element("svg", attributes)
    for tag, text in (("title", title), ("desc", alt)):
        ET.SubElement(element, tag, {"id": f"{identifier}-{tag}"}).text = text
    for child in drawing:
        element.extend(_simplify(child, identifier))
    # ElementTree escapes ">" in texts and attributes.
    return ET.tostring(element, encoding="unicode").replace(" />", "/>")


def _simplify(element: ET.Element, identifier: str) -> list[ET.Element]:
    """Return the visible remainder of an element: nothing, itself, or the children of a group without attributes."""
    if _is_invisible(element):
        return []
    children = [part for child in element for part in _simplify(child, identifier)]
    tag = element.tag.rpartition("}")[2]
    shortened = {
        name: _shorten_value(name, value, identifier)
        for name, value in element.items()
        if name not in _DROPPED and not name.startswith(("aria-", "{"))
    }
    defaults = _DEFAULTS | ({"x2": "0", "y2": "0"} if tag == "line" else {})
    attributes = {name: value for name, value in shortened.items() if defaults.get(name) != value}
    if attributes.get("font-size") == _FONT_SIZE and tag == "text":
        del attributes["font-size"]
    if tag == "g":
        if not children:
            return []
        attributes |= _pull_common(children)
        if not attributes:
            return children
    simplified = ET.Element(tag, attributes)
    simplified.text = element.text
    simplified.extend(children)
    return [simplified]


def _is_invisible(element: ET.Element) -> bool:
    if element.get("display") == "none" or element.get("opacity") == "0" or element.get("d") == "":
        return True
    # The background of a view without a colour.
    return element.get("class") == "background" and not {"fill", "stroke"}.intersection(element.keys())


def _shorten_value(name: str, value: str, identifier: str) -> str:
    """Return an attribute's value with rounded lengths, colours of the page and ids that begin with `identifier`."""
    if name in _LENGTHS:
        rounded = _FRACTION.sub(lambda match: f"{float(match[0]):.1f}".removesuffix(".0"), value)
        return _shorten_path(rounded) if name == "d" and _POLYGON.fullmatch(rounded) else rounded
    if name == "id":
        return f"{identifier}-{value}"
    if name in ("fill", "stroke", "stop-color"):
        value = _COLOUR_NAMES.get(value.lower(), value if value.startswith("url") else value.lower())
    return _REFERENCE.sub(rf"url(#{identifier}-\1)", value)


def _shorten_path(path: str) -> str:
    """Write axis-parallel lines of a path with one number each: most curves here are steps."""
    point = ("", "")

    def shorten_line(match: re.Match) -> str:
        nonlocal point
        (x, y), previous = (match[2], match[3]), point
        point = x, y
        if match[1] == "M" or (x != previous[0] and y != previous[1]):
            return match[0]
        return "" if point == previous else f"V{y}" if x == previous[0] else f"H{x}"

    return _POINT.sub(shorten_line, path)


def _pull_common(children: list[ET.Element]) -> dict[str, str]:
    """Remove the attributes that all children share, and return them; inherited values stay as they are."""
    common = {}
    for name in _INHERITED:
        values = {child.get(name) for child in children}
        if len(children) > 1 and len(values) == 1 and None not in values:
            common[name] = children[0].attrib[name]
            for child in children:
                del child.attrib[name]
    return common
