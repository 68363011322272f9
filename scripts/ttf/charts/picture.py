"""A chart as a picture: SVG, the same bytes whichever were drawn before it."""

import re

_TAG = re.compile(r'<\w+(?: [\w:-]+="[^"]*")+')
_ID = re.compile(r'(?<= )((?:id="|(?:clip-path|fill|stroke)="url\(#))(clip|gradient_)(\d+)')


def picture_of(spec: str) -> str:
    """The Vega-Lite specification (JSON) as SVG. No chart may load anything, so no address is allowed."""
    import vl_convert

    return renumbered(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])) + "\n"


def renumbered(svg: str) -> str:
    """The picture with its clip paths and gradients numbered from 0 in the order in which they first appear.

    The library counts them up over all pictures of a process. Texts of the picture are left as they are.
    """
    numbers: dict[str, int] = {}

    def renamed(at: re.Match) -> str:
        return f"{at[1]}{at[2]}{numbers.setdefault(at[2] + at[3], len(numbers))}"

    return _TAG.sub(lambda tag: _ID.sub(renamed, tag[0]), svg)
