"""The contracts of what is written of raw tables: an account of every row, what is wrong with them, what they hold."""

from dataclasses import replace

from ttf.engine.contract import REASON, Table, count, number, reason, share, table, text, words

_ACCOUNT = {
    "table": words("Table", "Raw table."),
    "rows_read": count("Rows read", "Rows of its files.", unit="rows"),
    "rows_kept": count("kept", "Rows that went on; those folded into others count as kept.", unit="rows"),
    "rows_quarantined": count("quarantined", "Rows that break a rule of the schema and are excluded.", unit="rows"),
}


def _quality(name: str, about: str, /, **columns) -> Table:
    return replace(table(name, about, **columns), path=f"quality/{name}.csv")


ROW_ACCOUNT = _quality("row_account", "A raw table and what became of its rows.", **_ACCOUNT)
ROW_ACCOUNT_BY_PART = _quality(
    "row_account_by_part",
    "The same of a part of a trace that is given in parts.",
    part=text("Part", "File or folder that is read by itself."),
    **_ACCOUNT,
)
RAW_FILES = _quality(
    "raw_files",
    "A file of the trace, or another entry of its folders: which table it is read for, or why it is left out.",
    file=text("File", "Its name in the folder; with that of the folder, where a trace is given in several."),
    table=words("Table", "Raw table that it is read for.", blank="it is left out"),
    rows_read=count("Rows read", "Rows of it for the table.", unit="rows", blank=REASON),
    reason=reason("Why it is left out, or why its rows are not known."),
)
ANOMALIES = _quality(
    "anomalies",
    "A finding about the raw tables, with what to do about it.",
    table=words("Table", "Raw table."),
    column=words("Column", "Its column.", blank="the finding is of whole rows or of the table"),
    code=words("Code", "Stable name of the kind of finding."),
    severity=words("Severity", "error, warning or note."),
    rows=count("Rows", "Rows concerned.", unit="rows", blank="the finding is not of rows"),
    share=share("Share of the table", "Of the rows of the table.", blank="the finding is not of rows"),
    first_lines=text("Lines", "The first lines concerned.", "the finding is not of lines", ours=r"[\d, ]+"),
    sentence=words("What is wrong", "The finding in words."),
    suggestion=text("Suggestion", "What to do about it.", "there is nothing to do", ours="none: .*"),
)
STATISTICS = _quality(
    "statistics",
    "A column of a raw table and what it holds, of the rows kept.",
    table=words("Table", "Raw table."),
    column=words("Column", "Column as the file names it."),
    stored_as=words("Stored as", "Its name here.", blank="the column is not stored"),
    type=words("Type", "Type by the schema."),
    rows=count("Rows", "Rows kept.", unit="rows"),
    blank=count("Blank", "Blank cells.", unit="rows", blank=REASON),
    blank_share=share("Blank", "Of the rows.", blank=REASON),
    distinct=count("Distinct", "Different values.", blank=REASON),
    minimum=count("Smallest", "In the stored unit.", blank=REASON),
    first_quartile=count("25%", "Nearest rank.", blank=REASON),
    middle=count("Median", "Nearest rank.", blank=REASON),
    third_quartile=count("75%", "Nearest rank.", blank=REASON),
    maximum=count("Largest", "In the stored unit.", blank=REASON),
    mean=number("Mean", "In the stored unit.", blank=REASON),
    commonest=text("Most frequent", "Values with their share of the cells that are not blank.", blank=REASON),
    longest=count("Longest", "Characters of the longest text.", blank=REASON),
)

TABLES = (ROW_ACCOUNT, ROW_ACCOUNT_BY_PART, RAW_FILES, ANOMALIES, STATISTICS)
