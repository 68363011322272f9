"""The numbers of a study as OpenMetrics text, which is also valid in Prometheus' older text format.

An interval is two metrics of its own, not a label of one metric: `sum()` and `avg()` over the labels of a metric must
have a meaning, and a selector without the label would mix estimates and bounds. All metrics are gauges, because a value
may fall between two runs. No sample has a time stamp, because the node exporter refuses them.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from ttf.analyses.nodes.find_lemon_nodes import LEMON_NODES
from ttf.analyses.outages.list_drains import DRAIN_LIST
from ttf.analyses.outages.measure_availability import AVAILABILITY
from ttf.analyses.outcomes.describe_strata import STRATA
from ttf.engine import words
from ttf.engine.storage.tables import detect_unit, read_table
from ttf.page.checks.thresholds import read_interval

FILE = "monitoring/time_to_failure.prom"
PREFIX = "ttf_"
TABLES = {table.name: table for table in (AVAILABILITY, DRAIN_LIST, LEMON_NODES, STRATA)}
_UNITS = {"s": "seconds", "share": "ratio", "1": "ratio", "": "ratio", "% a year": "percent_per_year"}


@dataclass(frozen=True)
class Gauge:
    """An entry of gauges.yaml: a number of metrics.json under `key`, or a column of the rows of a table."""

    name: str
    help: str
    key: str = ""
    interval: str = "95% confidence interval"
    bounds: str = ""
    table: str = ""
    column: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    where: dict[str, list] = field(default_factory=dict)
    n: str = ""


_ENTRIES = yaml.safe_load(Path(__file__).with_name("gauges.yaml").read_text(encoding="utf-8"))
GAUGES, ROW_GAUGES = ([Gauge(**entry) for entry in _ENTRIES[kind]] for kind in ("numbers", "rows"))
_NAME_BY_KEY = {gauge.key: gauge.name for gauge in GAUGES}


class _Metrics(dict[str, tuple[str, str, dict[str, float]]]):
    """Metric -> its help, its unit, and labels -> value."""

    def add(self, name: str, unit: str, help_text: str, labels: Mapping[str, str], value: float | None) -> None:
        """Add a sample to a metric, unless its value is None."""
        if value is not None:
            self.setdefault(name, (f"{help_text}.", unit, {}))[2][format_labels(labels)] = value

    def add_estimate(
        self, gauge: Gauge, unit: str, labels: Mapping[str, str], value: Any, bounds: tuple, n: int | None
    ) -> None:
        """Add the estimate, the bounds of its interval and its number of observations: up to four metrics."""
        if isinstance(value, str | bool):
            self.add(f"{PREFIX}{gauge.name}_info", "", gauge.help, {**labels, "value": format_truth(value)}, 1)
            return
        name, suffix = metric_name(gauge.name, unit), _unit_suffix(unit)
        self.add(name, suffix, gauge.help, labels, value)
        for bound, word, bound_value in zip(("low", "high"), ("Lower", "Upper"), bounds, strict=True):
            help_text = f"{word} bound of the {gauge.interval} of {name}"
            self.add(metric_name(gauge.name, unit, bound), suffix, help_text, labels, bound_value)
        self.add(f"{PREFIX}{gauge.name}_observations", "observations", f"Observations behind {name}", labels, n)


def metric_name(name: str, unit: str, bound: str = "") -> str:
    """Return ttf_name_bound_unit; the unit, in Prometheus' words, is not repeated."""
    suffix = f"_{_unit_suffix(unit)}"
    return f"{f'{PREFIX}{name}'.removesuffix(suffix)}{bound and f'_{bound}'}{suffix}"


def _unit_suffix(unit: str) -> str:
    return _UNITS.get(unit) or re.sub(r"[^a-z0-9]+", "_", unit.lower()).strip("_")


def name_number(key: str) -> str:
    """Return the name of a number without prefix and unit; a number that gauges.yaml lacks is named by its key."""
    return _NAME_BY_KEY.get(key) or re.sub(r"\W+", "_", f"number_{key}").lower().removesuffix("_s")


def render_metrics(study: str, folders: Mapping[str, Path], more_keys: Mapping[str, Iterable[str]] = {}) -> str:
    """Return OpenMetrics text. folders: subject -> that of metrics.json; more_keys: subject -> further numbers."""
    metrics = _Metrics()
    for subject, folder in folders.items():
        labels = {"study": study, "trace": subject}
        numbers = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
        _add_period(metrics, labels, numbers, folder / "brief.json")
        more = [key for key in more_keys.get(subject, ()) if key not in _NAME_BY_KEY]
        for gauge in [*GAUGES, *(Gauge(name_number(key), f"The number {key} of metrics.json", key) for key in more)]:
            # Without a failure, a rate has an upper bound alone.
            if number := numbers.get(gauge.key) or numbers.get(gauge.bounds.format("high")):
                value = number["value"] if gauge.key in numbers else None
                bounds = _number_bounds(numbers, gauge)
                metrics.add_estimate(gauge, number["unit"], labels, value, bounds, number["n"])
        for gauge in ROW_GAUGES:
            if (folder / TABLES[gauge.table].path).is_file():
                _add_rows(metrics, gauge, folder / TABLES[gauge.table].path, labels)
    return "".join(f"{line}\n" for line in [*_format_lines(metrics), "# EOF"])


def _add_period(metrics: _Metrics, labels: Mapping[str, str], numbers: Mapping[str, Mapping], brief: Path) -> None:
    has_dates = brief.is_file() and json.loads(brief.read_text(encoding="utf-8"))["period"]
    name, clock = ("timestamp_seconds", "") if has_dates else ("seconds", ", on a clock of unknown origin")
    for key, end, word in (("period.from_s", "start", "Start"), ("period.to_s", "as_of", "End")):
        help_text = f"{word} of the trace{clock}{'; all other metrics are as of then' if end == 'as_of' else ''}"
        metrics.add(f"{PREFIX}{end}_{name}", "seconds", help_text, labels, numbers.get(key, {}).get("value"))


def _number_bounds(numbers: Mapping[str, Mapping], gauge: Gauge) -> tuple[float | None, float | None]:
    for suffix in ("_clustered", "") if gauge.bounds else ():
        low, high = (numbers.get(gauge.bounds.format(bound) + suffix, {}).get("value") for bound in ("low", "high"))
        if (low, high) != (None, None):
            return low, high
    interval = read_interval(numbers, gauge.key) if gauge.key in numbers else None
    return interval[:2] if interval else (None, None)


def _add_rows(metrics: _Metrics, gauge: Gauge, path: Path, labels: Mapping[str, str]) -> None:
    table = TABLES[gauge.table]
    unit = detect_unit(path, table).named(table.columns[gauge.column].unit)
    where = [pl.col(column).is_in(values) for column, values in gauge.where.items()]
    for row in read_table(path, table).filter(where).iter_rows(named=True):
        bounds: tuple[float | None, ...] = (None, None)
        for suffix in ("", "_clustered"):
            row_bounds = tuple(row.get(gauge.bounds.format(bound) + suffix) for bound in ("low", "high"))
            bounds = bounds if row_bounds == (None, None) else row_bounds
        row_labels = {label: row[column] or "" for label, column in gauge.labels.items()}
        metrics.add_estimate(gauge, unit, {**labels, **row_labels}, row[gauge.column], bounds, row[gauge.n])


def _format_lines(metrics: _Metrics) -> Iterator[str]:
    for name, (help_text, unit, values) in metrics.items():
        yield f"# TYPE {name} gauge"
        if unit:
            yield f"# UNIT {name} {unit}"
        yield f"# HELP {name} {_quote(help_text)}"
        yield from (f"{name}{{{labels}}} {value!r}" for labels, value in values.items())


def format_labels(labels: Mapping[str, str]) -> str:
    """Return the labels of a sample, or of a selector in PromQL."""
    return ",".join(f'{label}="{_quote(value)}"' for label, value in labels.items())


def format_truth(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else value


def _quote(text: str) -> str:
    """Escape a text; control and direction characters become their codes, so that different texts stay different."""
    printable = words.escape_unprintable(text.replace("\\", "\\\\"))
    return printable.replace("\\", "\\\\").replace('"', '\\"')
