"""How many of a hundred drives of each model fail in a year?"""

from functools import partial

from ttf.analyses.declaration import Analysis, unit_block_days
from ttf.engine.columns import clustered_columns, interval_columns
from ttf.engine.contract import REASON, count, name, number, table, words

_PERCENT = partial(number, unit="% a year")

AFR = table(
    "afr",
    "Annual failure rate of all drives, and of each model.",
    stratum_by=words("Strata", "all, or the column of durations.parquet that groups the drives."),
    stratum=name("Stratum", "Value of that column.", by="stratum_by", sorted=True),
    drives=count("Drives", "Number of drives seen.", unit="drives"),
    drive_days=count("Drive-days", "Days on which a drive was seen, summed over drives.", unit="days"),
    failures=count("Failures", "Drives that failed.", unit="failures"),
    afr=_PERCENT("Annual failure rate", "100 times failures over years of 365 drive-days.", REASON),
    **interval_columns(_PERCENT, "Garwood's 95% CI; one-sided if there is no failure", REASON),
    **clustered_columns(_PERCENT),
    models=count("Models", "Models of the drives in the row.", unit="models"),
    without_failure=count("Models without a failure", "Models without a failure.", unit="models", n="models"),
)

ANALYSIS = Analysis(
    question="How many of a hundred drives of each model fail in a year?",
    theme="time_to_failure",
    rank=5,
    needs=["durations"],
    applies=lambda trace: "annual_failure_rate" in trace.format,
    settings={"by": lambda trace: trace.format["annual_failure_rate"], "block_days": unit_block_days},
    tables=[AFR],
    charts={"afr": "afr"},
    main=["afr"],
    sections=["afr"],
    memory_mb=250,
)
