"""The Jinja environments of a page: macros of HTML, and Markdown of folds."""

import hashlib
import os
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from ttf.display import phrases
from ttf.engine import words
from ttf.page.brief.mini_charts import draw_mini

# Compiled templates lie beside the bytecode of this module, whose content is part of their names.
_BYTECODE = Path(__file__).with_name("__pycache__")
_FORMATTERS = ("count", "number", "share", "duration", "plural")


@cache
def macros(templates: Path, name: str = "blocks.html") -> Any:
    """Return the macros of an HTML file; they escape their arguments."""
    jinja = _make_environment([templates], "html", autoescape=True)
    jinja.filters |= {
        "html": lambda text: Markup(phrases.to_html(text)),
        "plain": phrases.strip_markup,
        "mini": lambda chart: Markup(draw_mini(chart)),
        "plural": words.plural,
    }
    return jinja.get_template(name).module


def environment(templates: Path, analysis_folders: Iterable[Path] = ()) -> jinja2.Environment:
    """Return the Jinja environment for the templates of folds, also of analyses; an undefined name is an error."""
    jinja = _make_environment(
        [templates, *analysis_folders],
        "qmd",
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        keep_trailing_newline=True,  # a heading needs the blank line before it, also after an include
        autoescape=False,  # the output is Markdown; texts go through the filters md and label
    )
    jinja.filters |= {name: getattr(words, name) for name in _FORMATTERS}
    jinja.filters |= {
        "md": words.markdown,
        "label": lambda text: f"<bdi>{words.label(text)}</bdi>",
        "until": words.time_range,
    }
    return jinja


def _make_environment(folders: list[Path], kind: str, **options: Any) -> jinja2.Environment:
    """Return an environment that keeps compiled templates, by kind of environment, where bytecode can be written."""
    bytecode = None
    if os.access(_BYTECODE, os.W_OK) and not sys.dont_write_bytecode:
        code = hashlib.sha256(f"{jinja2.__version__}{Path(__file__).read_text(encoding='utf-8')}".encode())
        bytecode = jinja2.FileSystemBytecodeCache(str(_BYTECODE), f"{kind}-{code.hexdigest()[:12]}-%s")
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        bytecode_cache=bytecode,
        **options,
    )
