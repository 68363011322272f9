"""The numbers of data quality and the section of the report that uses them."""

import re
from pathlib import Path

import polars as pl
import pytest
from filled_texts import filled
from memory_tables import compute_metrics
from ttf.analyses.quality.measure_drift import DRIFT
from ttf.analyses.quality.measure_drift.compute import summarise_drift
from ttf.analyses.quality.measure_drift.numbers import NUMBERS
from ttf.analyses.quality.summarise_results.compute import summarise_quality
from ttf.display.phrases import list_keys, strip_markup, to_markdown
from ttf.display.trace_numbers import Numbers
from ttf.page.data_numbers import NUMBERS as STAGE_NUMBERS
from ttf.page.report import quality_lines
from ttf.page.report.trace_page import environment
from ttf.raw.raw_contracts import ANOMALIES, ROW_ACCOUNT, STATISTICS

quality_lines = filled(quality_lines)

ROOT = Path(__file__).resolve().parents[2]


def frame(schema, *rows):
    return pl.DataFrame(rows, schema=schema, orient="row")


def anomaly(rows, suggestion):
    return {
        "table": "pods",
        "rows": rows,
        "share": rows / 100,
        "sentence": "a <b> is | wrong",
        "suggestion": suggestion,
    }


def numbers(anomalies=(), drift=None):
    statistics = frame(
        STATISTICS.schema,
        {"table": "pods", "stored_as": "name", "rows": 5, "blank": 0},
        {"table": "pods", "stored_as": "gpu_type", "rows": 5, "blank": 5},
        {"table": "pods", "stored_as": None, "rows": 5},
    )
    account = frame(ROW_ACCOUNT.schema)
    tables = {"row_account": account, "anomalies": frame(ANOMALIES.schema, *anomalies), "statistics": statistics}
    metrics = compute_metrics("summarise_results", {"quality_summary": summarise_quality(tables)})
    metrics.add(STAGE_NUMBERS, tables)
    if drift is not None:
        drift = frame(DRIFT.schema, *drift)
        metrics.add(NUMBERS, {"drift": drift, "drift_summary": summarise_drift(drift)})
    return metrics


def section(metrics, tables=()):
    table_names = []

    def table(name, caption):
        table_names.append(name)
        return f"[{name}]"

    jinja = environment(ROOT / "report", [ROOT / "scripts" / "ttf" / "analyses" / "quality" / "measure_drift"])
    text = "".join(
        jinja.get_template(name).render(
            id="t1",
            m=Numbers(metrics),
            unit="pod",
            table=table,
            has_table=lambda name: name in tables,
            chart=lambda name: f"[{name}]",
        )
        for name in ("sections/quality.qmd", "drift.qmd")
    )
    text = to_markdown(text, Numbers(metrics))
    return " ".join(re.sub(r"</?(?:data|bdi)[^>]*>", "", text).split()), table_names


def test_anomalies_are_reported_and_escaped():
    metrics = numbers([anomaly(3, "allow the word X for y"), anomaly(9, "none: correct it")])
    assert metrics["quality.rows_suggested"]["value"] == 3
    assert metrics["quality.worst.rows"]["value"] == 9
    text, table_names = section(metrics)
    assert "12 rows break a rule and were quarantined." in text
    assert "A changed schema would accept 3 rows with 1 anomaly" in text
    assert "a &#60;b&#62; is &#124; wrong (9 rows, 9.0% of the table)" in text
    assert table_names == ["suggestions", "statistics"]
    text, _ = section(numbers([anomaly(1, None)]))
    assert "1 row breaks a rule and was quarantined." in text
    assert "No schema change would be right" in text


@pytest.mark.parametrize("p", [0.001, 0.5, None])
def test_drift(p):
    row = {"window": "week 2", "before": 0.1, "after": 0.2, "effect": 0.3, "n_before": 1, "n_after": 2}
    row |= {"p_adjusted": 1e-9, "p_adjusted_clustered": p}
    metrics = numbers(drift=[row])
    assert metrics["drift.moved"]["value"] == (p == 0.001)
    text, table_names = section(metrics)
    assert "Of 1 comparison of shares and medians" in text
    assert "[drift]" in text
    assert table_names == ["statistics", "drift"]


def test_the_line_of_quarantined_rows():
    read = {"data.rows_read": 139_764, "data.rows_quarantined": 0}
    m = Numbers(numbers())
    m |= {key: {"value": value, "unit": "rows", "n": None, "source": ""} for key, value in read.items()}
    (line,) = quality_lines.lines(None, m)
    assert strip_markup(line.result) == "0 of 139,764" and line.checked
    assert set(list_keys(line.result)) <= set(m)
    m["data.rows_quarantined"] = {"value": 3, "unit": "rows", "n": None, "source": ""}
    assert quality_lines.lines(None, m) == []
