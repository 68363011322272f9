"""Numbers of the reasons: attempts with a reason, evidence, leading reasons and domains, log lines."""

import polars as pl

from ttf.analyses.causes.classify_failures import FAILURE_KINDS, TAXONOMY, TAXONOMY_SUMMARY, UNMATCHED
from ttf.display.metrics import cells

_GROUP = "trials trials_share rtf_x_demand_share"
_REASONS = (pl.col("by") == "reason") & pl.col("domain").is_not_null()


def _is_leading(column: str) -> pl.Expr:
    """Return whether a row is the only reason with the highest value of a column."""
    is_highest = _REASONS & (pl.col(column) == pl.col(column).filter(_REASONS).max())
    return is_highest & (is_highest.sum() == 1)


NUMBERS = [
    cells(TAXONOMY_SUMMARY, "taxonomy"),
    cells(FAILURE_KINDS, "taxonomy.kind.{kind}", "trials trials_share gpu_share"),
    *(
        cells(TAXONOMY, "taxonomy", f"by_{name}=trials", n="", by="evidence", evidence=name)
        for name in ("event", "node_log", "text", "reason", "exit_code", "state")
    ),
    cells(
        TAXONOMY, "taxonomy.deterministic", "trials trials_share", n="trials", by="deterministic", deterministic=True
    ),
    *(
        cells(TAXONOMY, f"taxonomy.most.{name}", f"reason {_GROUP}", _is_leading(f"{name}_share"), n="trials")
        for name in ("trials", "rtf_x_demand")
    ),
    cells(UNMATCHED, "taxonomy", "unmatched_line=line unmatched_line_trials=trials", n="trials", take=1),
]
