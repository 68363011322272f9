"""What moved between windows of the submission, or against another trace?"""

from ttf.analysis import Analysis
from ttf.contract import count, number, reason, table, text

DRIFT = table(
    "drift",
    "TODO",
    window=text("Window", "TODO"),
    against=text("Against", "TODO"),
    column=text("Column", "TODO"),
    value=text("Value", "TODO"),
    statistic=text("Statistic", "TODO"),
    before=number("Before", "TODO"),
    after=number("After", "TODO"),
    n_before=count("N before", "TODO"),
    n_after=count("N after", "TODO"),
    test=text("Test", "TODO"),
    p_value=number("P value", "TODO"),
    p_adjusted=number("P adjusted", "TODO"),
    effect_name=text("Effect name", "TODO"),
    effect=number("Effect", "TODO"),
    reason=reason(),
)

ANALYSIS = Analysis(
    question="What moved between windows of the submission, or against another trace?",
    theme="data",
    rank=20,
    needs=["jobs"],
    uses=["jobs_against"],
    applies=lambda trace: trace.windows,
    settings={"windows": lambda trace: trace.windows, "parts": lambda trace: list(trace.parts)},
    tables=(DRIFT,),
    charts={"drift": "drift"},
    sections=["drift"],
    memory_mb=500,
)
