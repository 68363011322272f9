"""The contracts of what is written after the analyses: published findings, the comparison, the data dictionary."""

from dataclasses import replace

from ttf.engine.contract import REASON, count, number, table, words

_CLAIM = {
    "id": words("Id", "Id of the claim."),
    "trace": words("Trace", "Trace of the study; without one, the data set."),
    "dataset": words("Data set", "Data set of the finding."),
    "source": words("Source", "Publication."),
    "statement": words("Finding", "Published finding."),
}
SCORECARD = replace(
    table(
        "scorecard",
        "A published finding, with the value in the data.",
        **_CLAIM,
        published=number("Published", "Value in `unit`."),
        computed=number("Computed", "Value in `unit`.", blank="see note"),
        tolerance=number("Tolerance", "Largest accepted difference of the two values.", blank="it is not computable"),
        verdict=words(
            "Verdict", "reproduced, differs, suspect in the source, another cluster, not computable or not run."
        ),
        note=words("Note", "Reason for a missing value, a difference or the tolerance."),
        n=count("n", "Number of observations behind the computed value.", blank="the table has none"),
        unit=words("Unit", "Unit of the numbers.", blank="the claim has none"),
        evidence=words("Evidence", "printed, digitised or second-hand."),
    ),
    path="scorecard.csv",
)
IMPLIED_N = replace(
    table(
        "implied_n",
        "The number of points implied by a printed correlation and its printed p-value.",
        **_CLAIM,
        printed_r=words("r", "Value as printed."),
        printed_p=words("p", "Value as printed."),
        n_low=count("at least", "Smallest n that gives both as printed.", blank="no n does, or r or p is not a number"),
        n_best=count("best", "Closest n.", blank="no n gives both, or r or p is not a number"),
        n_high=count("at most", "Largest n that gives both as printed.", blank="no n does, or there is no largest"),
        n_in_data=count("found", "n in the data.", blank="the trace is not in the study"),
        verdict=words("Verdict", "agrees, differs, not run, malformed, impossible or identical."),
        note=words("Note", "Remarks.", blank="there are none"),
    ),
    path="implied_n.csv",
)
_NO_NUMBER = "the trace has no such number; see note"
STUDY_TABLES = replace(
    table(
        "study_tables",
        "A cell of a published table: its number there and in a trace.",
        trace=words("Trace", "Trace of the study."),
        source=words("Source", "Publication."),
        key=words("Key", "Short name of the publication."),
        dataset=words("Data set", "Data set of the printed numbers."),
        table=words("Table", "Name of the table."),
        title=words("Title", "What the table lists."),
        remark=words("Remark", "A sentence on the table.", blank="there is none"),
        chart=words("Chart", "Figure of the page that belongs to the table.", blank="there is none"),
        heading=words("Heading", "What the rows are."),
        group=words("Group", "Group of rows.", blank="the table has none"),
        row=words("Row", "Heading of the row."),
        column=words("Column", "Heading of the column."),
        claim=words("Claim", "Id of the claim that the cell compares.", blank="it compares none"),
        printed=words("Printed", "Number as printed; ≈: read from a figure.", blank="it is not printed"),
        value=number("Here", "Number in the trace, in `unit`.", blank=_NO_NUMBER),
        ci_low=number("from", "Lower bound of its 95% CI.", blank="there is no interval"),
        ci_high=number("to", "Upper bound of its 95% CI.", blank="there is no interval"),
        n=count("n", "Number of observations behind it.", blank="the table of the trace has none"),
        unit=words("Unit", "Unit of both numbers.", blank="they have none"),
        cell=words("Cell", "Table and column of the number in the trace.", blank="no table of a trace has it"),
        verdict=words("Verdict", "As in scorecard.csv and implied_n.csv.", blank="nothing is compared"),
        note=words("Note", "Reason for a missing number, or for doubt.", blank="there is none"),
    ),
    path="study_tables.csv",
)
_ANY = "the value holds for any"
PUBLISHED_VALUES = replace(
    table(
        "published_values",
        "A published value that a tile lists, because it is defined alike.",
        id=words("Id", "Id of the claim."),
        dataset=words("Data set", "Data set of the finding, whose traces do not list it."),
        tile=words("Tile", "Name of the tile: node_rate, mttf or availability."),
        name=words("Name", "Cluster or system."),
        remark=words("Remark", "What differs in the definition.", blank="there is none"),
        source=words("Source", "Publication."),
        year=count("Year", "Year of the publication."),
        basis=words("Basis", "infra: jobs that infrastructure ended; component: failures of watched units."),
        unit=words("Unit", "Unit that fails.", blank=_ANY),
        node_gpus=count("GPUs a node", "GPUs of a node.", blank=_ANY),
        gpus=count("GPUs", "GPUs of the job.", blank=_ANY),
        value=number("Value", "Failures per 1000 unit-days, hours, or a share, by tile."),
        ci_low=number("from", "Lower bound of Garwood's 90% CI.", blank="no count is printed"),
        ci_high=number("to", "Upper bound of Garwood's 90% CI.", blank="no count is printed"),
        events=count("Events", "Failures, as printed.", blank="no count is printed"),
        exposure_days=number("Exposure", "Unit-days of the events.", blank="no count is printed"),
        evidence=words("Evidence", "printed, digitised or second-hand."),
    ),
    path="published_values.csv",
)

COMPARISON = replace(
    table(
        "comparison",
        "A quantity of a trace, as its page states it; blank if its basis differs from that of most traces.",
        quantity=words("Quantity", "Column of the page that compares the traces."),
        trace=words("Trace", "Name of the trace."),
        number=words("Number", "Key of the value in metrics.json of the trace.", blank=REASON),
        value=number("Value", "Value in `unit`.", blank=REASON),
        unit=words("Unit", "Unit of the numbers.", blank=REASON),
        n=count("n", "Number of observations behind the value.", blank="the number has none"),
        low=number("from", "Lower bound of the interval.", blank="there is no interval"),
        high=number("to", "Upper bound of the interval.", blank="there is no interval"),
        cluster_by=words("Clusters", "Clusters of the interval.", blank="it assumes independence, or there is none"),
        basis=words("Basis", "What the value counts.", blank="there is no value, or one basis only"),
    ),
    path="comparison.csv",
)

_FILE = "the table is a Parquet file with columns by the trace's format"
DICTIONARY = replace(
    table(
        "dictionary",
        "A column of a table that a study writes.",
        path=words("Path", "Path of the table, below the folder of its trace or of the study."),
        table=words("Table", "Name of the table."),
        analysis=words("Analysis", "Analysis that writes the table.", "a stage before or after the analyses writes it"),
        row=words("A row", "Meaning of a row of the table."),
        column=words("Column", "Name of the column.", blank=_FILE),
        heading=words("Heading", "Heading on the page.", blank=_FILE),
        type=words("Type", "text, truth value, whole number, number or row number.", blank=_FILE),
        unit=words("Unit", "Unit of the numbers.", blank="it has none"),
        meaning=words("Meaning", "Meaning of the values.", blank=_FILE),
        blank_reason=words("Blank where", "Why a cell may be blank.", blank="no cell may be blank"),
    ),
    path="dictionary.csv",
)

TABLES = (SCORECARD, IMPLIED_N, STUDY_TABLES, PUBLISHED_VALUES, COMPARISON, DICTIONARY)
