"""Draw the figures of a page."""

import json

import vl_convert
from ttf.display.charts.figure import Figure


def draw_svg(figure: Figure) -> str:
    """Check the specification of a figure and draw it, without a network."""
    return vl_convert.vegalite_to_svg(json.dumps(figure.spec(validate=True)), allowed_base_urls=[])
