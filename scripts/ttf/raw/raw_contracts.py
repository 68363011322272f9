"""The contracts of what is written of raw tables: an account of every row, what is wrong with them, what they hold."""

from dataclasses import replace

from ttf.engine.contract import REASON, Column, Table, count, number, reason, share, table, text, words

_ACCOUNT = {
    "table": words("Table", "Raw table."),
    "rows_read": count("Rows read", "Rows of the files.", unit="rows"),
    "rows_accepted": count("kept", "Rows accepted, including those merged into others.", unit="rows"),
    "rows_quarantined": count("quarantined", "Rows that break a rule of the schema and are excluded.", unit="rows"),
}


def _quality_table(name: str, description: str, /, **columns: Column) -> Table:
    return replace(table(name, description, **columns), path=f"quality/{name}.csv")


ROW_ACCOUNT = _quality_table(
    "row_account", "A raw table, with the numbers of its accepted and quarantined rows.", **_ACCOUNT
)
ROW_ACCOUNT_BY_PART = _quality_table(
    "row_account_by_part",
    "A raw table of one part of a trace that comes in parts, with its numbers of rows.",
    part=text("Part", "File or folder that is read separately."),
    **_ACCOUNT,
)
RAW_FILES = _quality_table(
    "raw_files",
    "A file of the trace, or another entry of its folders: its table, or why it is ignored.",
    file=text("File", "Name in the folder; with the folder's name if the trace has several."),
    table=words("Table", "Raw table of the file.", blank="it is ignored"),
    rows_read=count("Rows read", "Rows of the file for the table.", unit="rows", blank=REASON),
    reason=reason("Why the file is ignored, or why its rows are unknown."),
)
ANOMALIES = _quality_table(
    "anomalies",
    "A problem found in the raw tables, with a suggestion.",
    table=words("Table", "Raw table."),
    column=words("Column", "Column of the table.", blank="the finding concerns whole rows or the table"),
    code=words("Code", "Stable name of the kind of finding."),
    severity=words("Severity", "error, warning or note."),
    rows=count("Rows", "Rows concerned.", unit="rows", blank="the finding does not concern rows"),
    share=share("Share of the table", "Rows concerned, of all rows.", blank="the finding does not concern rows"),
    first_lines=text("Lines", "First lines concerned.", "the finding concerns no lines", public_pattern=r"[\d, ]+"),
    sentence=words("What is wrong", "The finding in words."),
    suggestion=text("Suggestion", "Suggested action.", "no action is needed", public_pattern="none: .*"),
)
STATISTICS = _quality_table(
    "statistics",
    "A column of a raw table, with statistics of its accepted rows.",
    table=words("Table", "Raw table."),
    column=words("Column", "Name in the file."),
    stored_as=words("Stored as", "Name in the study.", blank="the column is not stored"),
    type=words("Type", "Type by the schema."),
    rows=count("Rows", "Rows accepted.", unit="rows"),
    blank=count("Blank", "Blank cells.", unit="rows", blank=REASON),
    blank_share=share("Blank", "Blank cells, of the rows.", blank=REASON),
    distinct=count("Distinct", "Distinct values.", blank=REASON),
    minimum=count("Smallest", "In the stored unit.", blank=REASON),
    first_quartile=count("25%", "Quantile by nearest rank.", blank=REASON),
    middle=count("Median", "Quantile by nearest rank.", blank=REASON),
    third_quartile=count("75%", "Quantile by nearest rank.", blank=REASON),
    maximum=count("Largest", "In the stored unit.", blank=REASON),
    mean=number("Mean", "In the stored unit.", blank=REASON),
    most_common=text("Most frequent", "Values with their share of the cells that are not blank.", blank=REASON),
    longest=count("Longest", "Characters of the longest text.", blank=REASON),
)

TABLES = (ROW_ACCOUNT, ROW_ACCOUNT_BY_PART, RAW_FILES, ANOMALIES, STATISTICS)
