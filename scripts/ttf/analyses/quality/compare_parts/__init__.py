"""What changed since the last part of the records, and what does the next week bring?"""

from functools import partial

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import FEWEST_CLUSTERS
from ttf.engine.contract import REASON, count, name, number, table, text, truth, whole_seconds, words

CHANGED, CHANCE, TOO_FEW, TOO_FEW_WEEKS = "changed", "within chance", "too few to tell", "too few weeks to tell"
# With fewer parts before, what parts do among themselves is not known.
FEWEST_PARTS = 4

_NO_TEST = f"nothing was tested, no clusters are known, or fewer than {FEWEST_CLUSTERS} effective ones"
_NOT_TESTED = "nothing was tested"
_NOT_LOST = "the measure is not lost time"

CHANGES = table(
    "changes",
    "A measure in the last part that has jobs, against all parts before it, from the same records.",
    measure=words("What", "failure_share, infra_rate, ettr, lost_time, suspect_nodes or failure_words."),
    unit=words("Unit", "Of before, after and the difference."),
    part=text("Part", "The last one that has jobs."),
    parts_before=count("Parts before", "Parts before it that have jobs.", unit="parts"),
    from_s=whole_seconds("From", "When the part begins, on the clock of the trace.", blank=REASON),
    to_s=whole_seconds("To", "When the records end.", blank=REASON),
    follow_up_s=whole_seconds("Follow-up", "Jobs count that ended within it.", blank="the measure goes by time"),
    before=number("Before", "In the parts before.", blank=REASON, n="n_before"),
    after=number("After", "In the part.", blank=REASON, n="n_after"),
    difference=number("Difference", "After less before.", blank=REASON),
    ci_low=number("95% from", "Lower end of its 95% CI, the wider of both tests'.", blank=REASON),
    ci_high=number("95% to", "Upper end of it.", blank=REASON),
    detectable_ratio=number(
        "Detectable",
        "After over before of a change that is found with 80% power if it is the only one.",
        blank="nothing was tested, the measure is a list, or no share is so high",
    ),
    events_before=count("Events", "Failures, or what is counted, before.", REASON, "events", n="n_before"),
    events_after=count("Events after", "The same in the part.", REASON, "events", n="n_after"),
    n_of=words("n of", "What n counts."),
    n_before=count("n", "Before.", blank=REASON),
    n_after=count("n after", "In the part.", blank=REASON),
    amount_before=number("GPU-hours", "Lost before.", _NOT_LOST, "GPU-hours", n="n_before"),
    amount_after=number("GPU-hours after", "Lost in the part.", _NOT_LOST, "GPU-hours", n="n_after"),
    cluster_by=words("Clustered by", "What fails alike.", blank="the trace names nothing that does, or no such test"),
    clusters=number("Effective clusters", "Kish's effective number of them.", blank=_NO_TEST),
    p_clustered=number("p, clustered", "Two-sided, of no difference where clusters differ.", blank=_NO_TEST),
    effective_parts=number("Effective parts", "Kish's effective number of those before.", blank=_NOT_TESTED),
    p_parts=number(
        "p, parts", "Two-sided, that it is one more part like those before.", blank="too few parts before, or no test"
    ),
    p_exact=number("p, exact", "Two-sided, of the counts alone.", blank="the measure has no such test"),
    p_value=number("p", "The largest of these.", blank=_NOT_TESTED),
    p_adjusted=number("adjusted p", "Holm over the measures tested.", blank=_NOT_TESTED),
    verdict=words("Verdict", "changed, within chance, too few to tell or too few weeks to tell."),
)
CHANGES_SUMMARY = table(
    "changes_summary",
    "How many measures of changes.csv changed, and how much is new; no row where there is one part.",
    measures=count("Measures", "Rows of changes.csv.", unit="measures"),
    tested=count("Tested", "Those with an adjusted p.", unit="measures", n="measures"),
    changed=count("Changed", "Those with that verdict.", unit="measures", n="measures"),
    new_failure_words=count("New words", "Rows of new_failure_words.csv.", unit="failure words"),
    new_suspect_nodes=count("New nodes", "Rows of new_suspect_nodes.csv.", unit="suspect nodes"),
)
NEW_WORDS = table(
    "new_failure_words",
    "A word of failed jobs that no earlier part has; of equal chance the most frequent first.",
    kind=words("Kind", "state, exit code, reason, or class (of the taxonomy)."),
    word=text("Word", "As the trace, or the taxonomy, has it."),
    failures=count("Failures", "Failed jobs, or attempts, of the last part with it."),
    clusters=count("Clusters", "By how many clusters, users mostly.", blank="the trace names none"),
    chance=number("Chance", "That it would be in the last part alone if nothing had changed."),
)
NEW_SUSPECTS = table(
    "new_suspect_nodes",
    "A node with excess failures that fails significantly more often in the last part than in the time before.",
    node=name("Node", "Its name.", of="node"),
    counted_before=count("Counted before", "Failures that the test counts, before."),
    counted=count("Counted", "The same in the part."),
    expected=number("Expected", "In the part, of a node that fails as often as before."),
    q_value=number("q", "Adjusted for the number of nodes with excess failures (Benjamini-Hochberg)."),
)
_forecast = partial(number, unit="failures")
FORECAST = table(
    "week_forecast",
    "A week, counted back from the end of the records: what was forecast from those before it; the next one last.",
    what=words("What", "failed_jobs or infra_failures."),
    week=count("Week", "From 1 on; the last is the next one."),
    start_s=whole_seconds("From", "On the clock of the trace.", blank=REASON),
    observed=count("Observed", "Failures that ended in it.", blank="it is the next week, or no week is whole"),
    weeks_before=count("Weeks before", "Whole weeks that the forecast is made of.", unit="weeks"),
    expected=_forecast("Expected", "The middle of the interval: the last two weeks.", blank=REASON),
    low=count("90% from", "Lower end of the 90% prediction interval.", REASON, "failures"),
    high=count("90% to", "Upper end of it.", REASON, "failures"),
    dispersion=number("Dispersion", "Variance over mean of the weeks before; 1: Poisson.", blank=REASON),
    tried=count("Tried", "Weeks before it with a forecast.", unit="weeks"),
    held_of_tried=count("held", "Those within their interval.", "no week was tried", "weeks", n="tried"),
    held=truth("Held", "Whether the week was within the interval.", blank="there is no forecast, or not yet"),
)

ANALYSIS = Analysis(
    question="What changed since the last part of the records, and what does the next week bring?",
    theme="quality",
    rank=10,
    needs=["jobs", "lives_infra", "node_failure_rate"],
    uses=["attempts", "placements", "reasons", "lemon_nodes", "mttf_by_gpus", "ettr_assumptions"],
    applies=lambda trace: trace.has_jobs and len(trace.parts) > 1,
    settings={"parts": lambda trace: list(trace.parts), "false_discovery": "lemons/false_discovery"},
    tables=(CHANGES, CHANGES_SUMMARY, NEW_WORDS, NEW_SUSPECTS, FORECAST),
    sections=["changes"],
    keeps_freed_memory=True,
    in_size_unit=True,
    memory_mb=500,
    mb_per_gb={"pai2020": 60, "sacct": 860},
)
