"""What changed since the last part of the records, and what does the next week bring?"""

from functools import partial

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import FEWEST_CLUSTERS
from ttf.engine.contract import REASON, count, name, number, table, text, truth, whole_seconds, words

CHANGED, CHANCE, TOO_FEW, TOO_FEW_WEEKS = "changed", "within chance", "too few to tell", "too few weeks to tell"
# With fewer earlier parts, the variation between parts is not known.
FEWEST_PARTS = 4

_NO_TEST = f"nothing was tested, no clusters are known, or there are fewer than {FEWEST_CLUSTERS}"
_NOT_TESTED = "nothing was tested"
_NOT_LOST = "the measure is not lost_time"

CHANGES = table(
    "changes",
    "A measure in the last part that has jobs, compared with all earlier parts of the same records.",
    measure=words("What", "failure_share, infra_rate, scheduled_ettr, lost_time, suspect_nodes or failure_words."),
    unit=words("Unit", "Unit of before, after and the difference."),
    part=text("Part", "Last part with jobs."),
    parts_before=count("Parts before", "Earlier parts with jobs.", unit="parts"),
    from_s=whole_seconds("From", "Start of the part, on the clock of the trace.", blank=REASON),
    to_s=whole_seconds("To", "End of the records.", blank=REASON),
    follow_up_s=whole_seconds(
        "Follow-up", "Only jobs that ended within this time of their start count.", "the measure counts by time"
    ),
    before=number("Before", "Value in the earlier parts.", blank=REASON, n="n_before"),
    after=number("After", "Value in the last part.", blank=REASON, n="n_after"),
    difference=number("Difference", "After minus before.", blank=REASON),
    ci_low=number("95% from", "Lower bound of the wider 95% CI of two tests.", blank=REASON),
    ci_high=number("95% to", "Upper bound of the interval.", blank=REASON),
    detectable_ratio=number(
        "Detectable",
        "After divided by before, for a change that is detected with 80% power if it is the only one.",
        blank="nothing was tested, the measure is a list, or no share is so high",
    ),
    events_before=count("Events", "Failures or other events in the earlier parts.", REASON, "events", n="n_before"),
    events_after=count("Events after", "Failures or other events in the last part.", REASON, "events", n="n_after"),
    n_of=words("n of", "What n counts, such as jobs."),
    n_before=count("n", "Denominator in the earlier parts; `n_of` says what it counts.", blank=REASON),
    n_after=count("n after", "Denominator in the last part; `n_of` says what it counts.", blank=REASON),
    amount_before=number(
        "GPU-hours", "GPU-hours of failed attempts, earlier parts.", _NOT_LOST, "GPU-hours", n="n_before"
    ),
    amount_after=number(
        "GPU-hours after", "GPU-hours of failed attempts, last part.", _NOT_LOST, "GPU-hours", n="n_after"
    ),
    cluster_by=words("Clustered by", "Kind of clusters.", blank="the trace names none, or no such test"),
    clusters=number("Effective clusters", "Kish's effective number of clusters.", blank=_NO_TEST),
    p_clustered=number("p, clustered", "Two-sided p of no difference, with variation between clusters.", _NO_TEST),
    p_parts=number("p, parts", "Two-sided p that the part is like earlier ones.", "too few earlier parts, or no test"),
    p_exact=number("p, exact", "Two-sided p from the counts alone.", blank="the measure has no such test"),
    p_value=number("p", "Largest of three p-values: clustered, between parts and exact.", blank=_NOT_TESTED),
    p_adjusted=number("adjusted p", "P-value adjusted over the tested measures by Holm's method.", blank=_NOT_TESTED),
    verdict=words("Verdict", "changed, within chance, too few to tell, or too few weeks to tell."),
)
CHANGES_SUMMARY = table(
    "changes_summary",
    "Measures of changes.csv by result, and the number of new words and nodes; no row if there is one part.",
    measures=count("Measures", "Rows of changes.csv.", unit="measures"),
    tested=count("Tested", "Measures that have an adjusted p-value.", unit="measures", n="measures"),
    changed=count("Changed", "Measures with the verdict changed.", unit="measures", n="measures"),
    new_failure_words=count("New words", "Rows of new_failure_words.csv.", unit="failure words"),
    new_suspect_nodes=count("New nodes", "Rows of new_suspect_nodes.csv.", unit="suspect nodes"),
)
NEW_WORDS = table(
    "new_failure_words",
    "A word of failed jobs that no earlier part has, the least likely by chance first.",
    kind=words("Kind", "state, exit code, reason, or class (of the taxonomy)."),
    word=text("Word", "Word of the trace or of the taxonomy."),
    failures=count("Failures", "Failed jobs or attempts of the last part with this word."),
    clusters=count("Clusters", "Clusters with this word, mostly users.", blank="the trace names none"),
    chance=number("Chance", "Probability that the word is only in the last part if nothing changed."),
)
NEW_SUSPECTS = table(
    "new_suspect_nodes",
    "A node with excess failures that fails significantly more often in the last part than before.",
    node=name("Node", "Name of the node.", name_kind="node"),
    counted_before=count("Counted before", "Failures counted before the last part."),
    counted=count("Counted", "Failures counted in the last part."),
    expected=number("Expected", "Expected failures in the last part if the node's rate is unchanged."),
    q_value=number("q", "Adjusted for the number of nodes with excess failures (Benjamini-Hochberg)."),
)
GONE_SUSPECTS = table(
    "gone_suspect_nodes",
    "A node with excess failures before the last part that no longer has them in an equally long time up to the end.",
    node=name("Node", "Name of the node.", name_kind="node"),
    counted_before=count("Counted before", "Failures counted in the time before the last part."),
    counted=count("Counted", "Failures counted in the time up to the end."),
)
_forecast = partial(number, unit="failures")
FORECAST = table(
    "week_forecast",
    "A week, counted back from the end of the records, with its forecast from earlier weeks; the next week last.",
    what=words("What", "failed_jobs or infra_failures."),
    week=count("Week", "Number from 1; the last is the next week."),
    observed=count("Observed", "Failures that ended in the week.", blank="it is the next week, or no week is complete"),
    weeks_before=count("Weeks before", "Complete earlier weeks on which the forecast rests.", unit="weeks"),
    expected=_forecast("Expected", "Middle of the prediction interval: mean of the last two weeks.", blank=REASON),
    low=count("90% from", "Lower bound of the 90% prediction interval.", REASON, "failures"),
    high=count("90% to", "Upper bound of the interval.", REASON, "failures"),
    dispersion=number(
        "Dispersion", "Variance divided by mean of the counts of earlier weeks; 1 for Poisson counts.", REASON
    ),
    tried=count("Tried", "Earlier weeks with a forecast.", unit="weeks"),
    held_of_tried=count(
        "held", "Earlier weeks whose count lay within its interval.", "no week was tried", "weeks", n="tried"
    ),
    held=truth("Held", "Whether the week was within the interval.", blank="there is no forecast, or not yet"),
)

ANALYSIS = Analysis(
    question="What changed since the last part of the records, and what does the next week bring?",
    theme="quality",
    rank=10,
    needs=["jobs", "durations_infra", "node_failure_rate"],
    uses=["attempts", "placements", "reasons", "lemon_nodes", "mttf_by_gpus", "ettr_assumptions"],
    applies=lambda trace: trace.has_jobs and len(trace.parts) > 1,
    settings={"parts": lambda trace: list(trace.parts), "false_discovery": "lemons/false_discovery"},
    tables=(CHANGES, CHANGES_SUMMARY, NEW_WORDS, NEW_SUSPECTS, GONE_SUSPECTS, FORECAST),
    sections=["changes"],
    in_size_unit=True,
    memory_mb=500,
    mb_per_gb={"pai2020": 60, "sacct": 860},
)
