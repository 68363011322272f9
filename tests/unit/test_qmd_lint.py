"""The check of .qmd files finds each kind of fault, and no fault in a correct file."""

import pytest
from qmd_lint import faults

CORRECT = """# One {#sec-one}

See @fig-a and @tbl-b, in @sec-one.

::: {.callout-note}
Text.
:::

::: {#fig-a}

```{=html}
<div id="chart-a" aria-label="a &lt; b"></div>
<script>charts.push(["chart-a", {"x": "datum.a > 1"}])</script>
```

```{=typst}
#chart("figures/a.svg", "a")
```

A caption.

:::

::: {#tbl-b}

```{=html}
<table><tr><td>1<br></td></tr></table>
```

Another.

:::
"""


def test_nothing_wrong():
    assert faults(CORRECT) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("@fig-a", "@fig-c", "fig-c"),
        ("@sec-one", "@sec-two", "sec-two"),
        ("{#tbl-b}", "{#fig-a}", "fig-a twice"),
        ('id="chart-a"', 'id="sec-one"', "sec-one twice"),
        ("Text.\n:::", "Text.\n", "balanced"),
        ("</td>", "", "td"),
        ("</table>", "", "table"),
        ("Another.\n", "", "tbl-b has no caption"),
        ("A caption.", "One.\n\nTwo.", "fig-a has no caption"),
        ('```{=typst}\n#chart("figures/a.svg", "a")\n```\n', "", "no picture"),
        ("See @fig-a", "@fig-a", "begins"),
    ],
)
def test_each_fault_is_found(old, new, message):
    assert old in CORRECT
    assert any(message in fault for fault in faults(CORRECT.replace(old, new, 1)))
