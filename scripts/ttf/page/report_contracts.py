"""The contracts of what is written after the analyses: published findings beside the data, and the data dictionary."""

from dataclasses import replace

from ttf.engine.contract import count, number, seconds, table, truth, words

_CLAIM = {
    "id": words("Id", "Of the claim."),
    "trace": words("Trace", "Trace that it is about."),
    "source": words("Source", "Where it was published."),
    "statement": words("Finding", "What was published."),
}
SCORECARD = replace(
    table(
        "scorecard",
        "A published finding and what the data give.",
        **_CLAIM,
        published=number("Published", "In `unit`."),
        computed=number("Computed", "In `unit`.", blank="see note"),
        tolerance=number("Tolerance", "By how much the two may differ.", blank="it is not computable"),
        verdict=words("Verdict", "reproduced, differs, suspect in the source, not computable or not run."),
        note=words("Note", "Why it is not computed, why it differs, or why the tolerance is what it is."),
        n=count("n", "What the computed number rests on.", blank="the table does not say"),
        unit=words("Unit", "Of the numbers.", blank="the claim names none"),
        evidence=words("Evidence", "printed, digitised or second-hand."),
    ),
    path="scorecard.csv",
)
IMPLIED_N = replace(
    table(
        "implied_n",
        "The number of points that a printed correlation and its printed p-value imply.",
        **_CLAIM,
        printed_r=words("r", "As printed."),
        printed_p=words("p", "As printed."),
        n_low=count("at least", "Smallest n that gives both as printed.", blank="no n does, or r or p is no number"),
        n_best=count("best", "The n that comes nearest.", blank="as above"),
        n_high=count("at most", "Largest n that gives both as printed.", blank="as above, or there is no largest"),
        n_found=count("found", "n in the data.", blank="the trace is not in the study"),
        verdict=words("Verdict", "agrees, differs, not run, malformed, impossible or identical."),
        note=words("Note", "What is to be known.", blank="nothing is amiss"),
    ),
    path="implied_n.csv",
)
_NO_PART = "it plays no part"
ETTR_REFERENCE = replace(
    table(
        "ettr_reference",
        "A published statement on the effective training time ratio (ETTR) or mean time to failure, computed again.",
        statement=words("Statement", "What was published."),
        source=words("Source", "Where it was published."),
        quantity=words("Quantity", "ettr, mttf_h (hours) or error_percent (of an approximation)."),
        gpus=count("GPUs", "GPUs of the run."),
        failures_per_1000_node_days=number("per 1000 node-days", "Failure rate of a node."),
        checkpoint_interval_s=seconds("Checkpoint interval", "Work between two checkpoints.", blank=_NO_PART),
        checkpoint_write_s=seconds("Checkpoint write", "How long writing one blocks the work.", blank=_NO_PART),
        restart_s=seconds("Start-up", "From being scheduled to working.", blank=_NO_PART),
        queue_s=seconds("Queue", "Wait at each start.", blank=_NO_PART),
        published=number("Published", "As published, in the unit of the quantity."),
        computed=number("Formula", "By the formula of the same paper."),
        exact=number("Exact", "By the exact renewal model.", blank="the statement is not of a ratio"),
        tolerance=number("Tolerance", "By how much the two may differ."),
        reproduced=truth("Verdict", "Whether the formula gives what is published."),
        note=words("Note", "What is to be known.", blank="nothing is amiss"),
    ),
    path="ettr_reference.csv",
)

_OF_FILE = "the table is a Parquet file, of which the trace's format decides the columns"
DICTIONARY = replace(
    table(
        "dictionary",
        "A column of a table that a study writes.",
        path=words("Path", "Of the table, below the folder of its trace or of the study."),
        table=words("Table", "Its name."),
        analysis=words("Analysis", "What makes it.", blank="it is made before or around the analyses"),
        row=words("A row", "What a row of the table is."),
        column=words("Column", "Its name in the table.", blank=_OF_FILE),
        heading=words("Heading", "What the page calls it.", blank=_OF_FILE),
        type=words("Type", "text, truth value, whole number, number or row number.", blank=_OF_FILE),
        unit=words("Unit", "Of its numbers.", blank="it has none"),
        meaning=words("Meaning", "What it holds.", blank=_OF_FILE),
        blank_where=words("Blank where", "Why a cell may be blank.", blank="no cell is"),
    ),
    path="dictionary.csv",
)

TABLES = (SCORECARD, IMPLIED_N, ETTR_REFERENCE, DICTIONARY)
