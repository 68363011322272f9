"""The website of the report: pages by trace and theme, links across them, nothing that Quarto would warn of."""

import re

import pytest
import yaml
from qmd_lint import faults_of_site
from ttf.errors import StudyError
from ttf.publish import website

FIGURE = """::: {#fig-%s}

```{=html}
<div>@fig-x
# no heading {#sec-no}
</div>
```

```{=typst}
#chart("a", "b")
```

A.

:::
"""
REPORT = f"""---
title: "T"
---

Before all.

# Findings {{#sec-findings}}

See @sec-t1-sizes and @fig-t1-one, of @sec-methods.

{{{{< include __a.qmd >}}}}

# Methods {{#sec-methods}}

As in @fig-m, not @fig-t1-one; @sec-methods.

{FIGURE % "m"}
# References {{#sec-references .unnumbered}}

::: {{#refs}}
:::
"""
TRACE = f"""# The trace &#95;a {{#sec-t1}}

::: {{.callout-warning}}
Synthetic.
:::

## First {{#sec-t1-first}}

See @fig-t1-one and, after it, @sec-t1-sizes and @sec-t1.

{FIGURE % "t1-one"}
## Second {{#sec-t1-second}}

### Sizes {{#sec-t1-sizes}}

See @fig-t1-one.
"""
TEXTS = {"report.qmd": REPORT, "__a.qmd": TRACE}


def test_a_page_for_each_chapter_trace_and_theme():
    files = website.sources(TEXTS, "Title")
    assert set(files) == {
        "_quarto.yml",
        "index.qmd",
        "trace-_a/index.qmd",
        "trace-_a/first.qmd",
        "trace-_a/second.qmd",
        "methods.qmd",
    }
    project = yaml.safe_load(files["_quarto.yml"])
    assert project["project"]["type"] == "website"
    assert project["website"]["search"] is True
    linked = set(re.findall(r"href: (\S+)", files["_quarto.yml"]))
    assert linked == set(files) - {"_quarto.yml"}
    assert yaml.safe_load(files["trace-_a/first.qmd"].split("---\n")[1]) == {
        "title": "First",
        "engine": "markdown",
        "bibliography": "../references.bib",
        "include-in-header": "../header-below.html",
        "include-after-body": "../footer.html",
    }


def test_references_across_pages_are_links():
    files = website.sources(TEXTS, "Title")
    assert "[“Sizes”](trace-_a/second.qmd#sec-t1-sizes)" in files["index.qmd"]
    assert (
        "[the chart in “First”](trace-_a/first.qmd#fig-t1-one), of [“Methods”](methods.qmd#sec-methods)"
        in (files["index.qmd"])
    )
    assert (
        "See @fig-t1-one and, after it, [“Sizes”](../trace-_a/second.qmd#sec-t1-sizes)" in (files["trace-_a/first.qmd"])
    )
    assert "As in @fig-m, not [the chart in “First”](trace-_a/first.qmd#fig-t1-one)" in files["methods.qmd"]
    assert "<div>@fig-x\n# no heading {#sec-no}" in files["methods.qmd"]
    assert "\n## Sizes {#sec-t1-sizes}" in files["trace-_a/second.qmd"]
    assert faults_of_site({path: text for path, text in files.items() if path.endswith(".qmd")}) == []


def test_every_page_of_a_synthetic_trace_says_so():
    files = website.sources(TEXTS, "Title")
    assert all("Synthetic." in text for path, text in files.items() if path.startswith("trace-_a/"))


def test_a_reference_to_nothing_is_an_error():
    with pytest.raises(StudyError, match="fig-absent"):
        website.sources(TEXTS | {"report.qmd": REPORT.replace("@fig-m,", "@fig-absent,")}, "Title")


@pytest.mark.parametrize(
    ("says", "leaves", "good"),
    [
        ("Output created", "fine", True),
        ("WARNING Unable to resolve crossref @fig-a", "fine", False),
        ("Output created", "?@fig-a", False),
    ],
)
def test_what_quarto_only_warns_of_is_an_error(tmp_path, says, leaves, good):
    quarto = tmp_path / "quarto"
    quarto.write_text(f"#!/bin/sh\nmkdir _site\necho '{leaves}' > _site/index.html\necho '{says}' >&2\n")
    quarto.chmod(0o755)
    if good:
        assert (website.rendered(str(quarto), tmp_path) / "index.html").exists()
    else:
        with pytest.raises(StudyError, match="fig-a"):
            website.rendered(str(quarto), tmp_path)


def test_pages_below_find_scripts_and_files_above():
    header = '<script src="vega.js"></script>\n<script src="charts.js"></script>\n'
    assert website.header_below(header).count('src="../') == 2
    link = '<a class="file" href="../a/figures/x.svg">'
    texts = TEXTS | {"__a.qmd": TRACE.replace("<div>", f"<div>{link}</a>")}
    assert 'href="../../a/figures/x.svg"' in website.sources(texts, "Title")["trace-_a/first.qmd"]
