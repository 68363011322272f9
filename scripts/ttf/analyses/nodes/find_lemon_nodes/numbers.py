"""Numbers for the page: nodes with excess failures, the first of them, and the fleet with and without them."""

from ttf.analyses.nodes.find_lemon_nodes import LEMON_EFFECT, LEMON_NODES, LEMON_SUMMARY
from ttf.display.metrics import CI_S, cells

_WITHOUT = " ".join(f"ci_{end}{kind}_without_s" for kind in ("", "_clustered") for end in ("low", "high"))
_EFFECT = " ".join(("lemons", "mttf_s", "mttf_without_s", "mttf_ratio", CI_S, _WITHOUT))
_FIRST = "node counted expected q_spread ordinary_cv"

NUMBERS = [
    cells(LEMON_SUMMARY, "lemons"),
    cells(LEMON_NODES, "lemons.first", _FIRST, not_blank="p_value", n="failures", take=1),
    cells(
        LEMON_NODES,
        "lemons.likely",
        "node",
        not_blank="likely_ratio",
        sort="-likely_ratio node",
        take=1,
    ),
    *(
        cells(
            LEMON_EFFECT,
            f"lemons.{name}",
            _EFFECT,
            n="failures",
            picked_on=half,
        )
        for name, half in (("same", "whole window"), ("split", "first half"))
    ),
]
