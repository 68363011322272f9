"""What changed between windows of the submission, or against another trace?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import FEWEST_CLUSTERS, WINDOWS
from ttf.engine.contract import REASON, count, name, number, table, text, words

_NO_TEST = f"no test, no known clusters, or fewer than {FEWEST_CLUSTERS} effective clusters"

DRIFT = table(
    "drift",
    "A share, distribution or median, compared between two windows or traces; largest effects first.",
    window=text("Window", "The later window, or the trace.", public_pattern=WINDOWS),
    against=text("Against", "Compared with: a window, all earlier windows, or another trace.", public_pattern=WINDOWS),
    column=words("Column", "Column of the jobs."),
    value=name("Value", "The value whose share is compared.", blank="all values are compared", by="column"),
    statistic=words("What", "share, failure_share (of ended jobs), distribution or median."),
    before=number("Before", "Share, or median in the unit of the column.", blank=REASON),
    after=number("After", "Share or median in `window`.", blank=REASON),
    n_before=count("n", "Jobs in the window of comparison.", unit="jobs"),
    n_after=count("n", "Jobs in `window`.", unit="jobs"),
    test=words("Test", "two_proportion_z, chi_square or mann_whitney."),
    p_adjusted=number("adjusted p", "P-value adjusted over all comparisons by Holm's method.", blank=REASON),
    cluster_by=words("Clustered by", "Level of correlated failures.", blank="the trace names no such level"),
    clusters=number("Effective clusters", "Kish's effective number in both windows.", blank=_NO_TEST),
    p_adjusted_clustered=number(
        "adjusted p, clustered", "P-value adjusted over all comparisons by Holm's method.", _NO_TEST
    ),
    effect_name=words("Effect size", "cohen_h, cramer_v or cliff_delta."),
    effect=number("Effect", "Positive if the value rose; always positive for a distribution.", blank=REASON),
)
# Limit of the adjusted p of a comparison.
SIGNIFICANCE = 0.05
DRIFT_SUMMARY = table(
    "drift_summary",
    f"How many comparisons of drift.csv changed significantly: adjusted p below {SIGNIFICANCE}.",
    comparisons=count("Comparisons", "Rows of drift.csv.", unit="comparisons"),
    moved_if_independent=count(
        "moved if independent", "Significant comparisons if jobs were independent.", unit="comparisons", n="comparisons"
    ),
    cluster_by=words("Clustered by", "Level of correlated failures.", blank="the trace names no such level"),
    tested=count("Tested", "Comparisons with a clustered p-value.", unit="comparisons", n="comparisons"),
    moved=count("Moved", "Significant comparisons by the clustered p-value.", unit="comparisons", n="tested"),
)

ANALYSIS = Analysis(
    question="What changed between windows of the submission, or against another trace?",
    theme="quality",
    rank=20,
    needs=["jobs"],
    uses=["jobs_against"],
    applies=lambda trace: trace.windows,
    settings={"windows": lambda trace: trace.windows, "parts": lambda trace: list(trace.parts)},
    tables=(DRIFT, DRIFT_SUMMARY),
    charts={"drift": "drift"},
    sections=["drift"],
    memory_mb=500,
)
