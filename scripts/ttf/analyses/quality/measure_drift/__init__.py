"""What moved between windows of the submission, or against another trace?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import FEWEST_CLUSTERS, WINDOWS
from ttf.engine.contract import REASON, count, name, number, table, text, words

_NO_TEST = f"nothing was tested, no clusters are known, or fewer than {FEWEST_CLUSTERS} effective ones"

DRIFT = table(
    "drift",
    "A share, a distribution or a median, compared between two windows or traces; the largest effects first.",
    window=text("Window", "The later window, or the trace.", ours=WINDOWS),
    against=text("Against", "What it is compared with: a window, all before, or another trace.", ours=WINDOWS),
    column=words("Column", "Column of the jobs."),
    value=name("Value", "Its value.", blank="the comparison is of all its values", by="column"),
    statistic=words("What", "share, failure_share (of ended jobs), distribution or median."),
    before=number("Before", "Share, or median in the unit of the column.", blank=REASON),
    after=number("After", "The same of `window`.", blank=REASON),
    n_before=count("n", "Jobs before.", unit="jobs"),
    n_after=count("n", "Jobs after.", unit="jobs"),
    test=words("Test", "two_proportion_z, chi_square or mann_whitney."),
    p_value=number("p", "Two-sided.", blank=REASON),
    p_adjusted=number("adjusted p", "Holm over all comparisons.", blank=REASON),
    cluster_by=words("Clustered by", "What fails alike.", blank="the trace names nothing that does"),
    clusters=number("Effective clusters", "Kish's effective number, of both windows.", blank=_NO_TEST),
    p_clustered=number("p, clustered", "Two-sided, of a test that holds when clusters differ.", blank=_NO_TEST),
    p_adjusted_clustered=number("adjusted p, clustered", "Holm over all comparisons.", blank=_NO_TEST),
    effect_name=words("Effect size", "cohen_h, cramer_v or cliff_delta."),
    effect=number("Effect", "Above 0 where it rose; of a distribution always above.", blank=REASON),
)
# Of the adjusted p of a comparison.
SIGNIFICANCE = 0.05
DRIFT_SUMMARY = table(
    "drift_summary",
    f"How many comparisons of drift.csv moved: an adjusted p below {SIGNIFICANCE}.",
    comparisons=count("Comparisons", "Rows of drift.csv.", unit="comparisons"),
    moved_if_independent=count(
        "moved if independent", "By the p of independent jobs.", unit="comparisons", n="comparisons"
    ),
    cluster_by=words("Clustered by", "What fails alike.", blank="the trace names nothing that does"),
    tested=count("Tested", "Those with a clustered p.", unit="comparisons", n="comparisons"),
    moved=count("Moved", "By the clustered p.", unit="comparisons", n="tested"),
)

ANALYSIS = Analysis(
    question="What moved between windows of the submission, or against another trace?",
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
