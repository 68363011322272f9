"""The file of metrics is valid OpenMetrics and holds cells alone; alert rules and dashboard use its metrics."""

import json
import re
from pathlib import Path

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as parse_older_text
from ttf.analyses.nodes.find_lemon_nodes import LEMON_NODES
from ttf.analyses.outages.list_drains import DRAIN_LIST
from ttf.analyses.outages.measure_availability import AVAILABILITY
from ttf.analyses.outcomes.describe_strata import STRATA
from ttf.engine.storage.tables import write_csv
from ttf.page.checks.thresholds import Rule, Subject
from ttf.page.monitoring.alert_rules import render_alert_rules
from ttf.page.monitoring.open_metrics import GAUGES, ROW_GAUGES, TABLES, metric_name, render_metrics

ROOT = Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "docs/grafana-dashboard.json").read_text(encoding="utf-8"))


def number(value, unit="share", n=100):
    return {"value": value, "unit": unit, "n": n, "source": "tables/outcomes.csv"}


NUMBERS = {
    "period.from_s": number(1_735_690_554, "s", None),
    "period.to_s": number(1_740_873_600, "s", None),
    "outcomes.failure_share": number(0.3),
    "outcomes.failure_share_low": number(0.28),
    "outcomes.failure_share_high": number(0.32),
    "outcomes.failure_share_low_clustered": number(0.2),
    "outcomes.failure_share_high_clustered": number(0.4),
    "sizes.rate.ci_high": number(3.5, "per 1000 node-days"),
    "sizes.basis": number("proxy", "label"),
    "ettr.valid": number(True, "truth"),
    "forecast.failed_jobs.expected": number(12.5, "failures", 8),
    "forecast.failed_jobs.low": number(5, "failures", 8),
    "forecast.failed_jobs.high": number(21, "failures", 8),
    "quality.grade": number("B", "label", None),
}
HOSTILE_NAMES = ('n1"} 1\n# EOF', "n1\\", "n1\u202e\x00", "n1\u2028")
ROWS = {
    STRATA: [
        {"stratum_by": "gpu_type", "stratum": "a100", "failure_share": 0.25, "ended": 8, "ci_low": 0.1, "ci_high": 0.5},
        {"stratum_by": "account", "stratum": "secret", "failure_share": 0.5, "ended": 4},
    ],
    AVAILABILITY: [{"stratum_by": "group", "stratum": "rack 1", "availability": 0.99, "outages": 7}],
    LEMON_NODES: [{"node": "n7", "fleet": "a100", "rate_ratio": 9.5, "lemon": False, "counted": 3}],
    DRAIN_LIST: [
        {"node": name, "fleet": "all", "listed": True, "rate_ratio": 2.5 + row, "counted": 6}
        for row, name in enumerate(HOSTILE_NAMES)
    ],
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "metrics.json").write_text(json.dumps(NUMBERS))
    (tmp_path / "brief.json").write_text(json.dumps({"period": "1 January to 2 March 2025"}))
    for table, rows in ROWS.items():
        write_csv(table.frame(rows), tmp_path / table.path)
    return tmp_path


def read_samples(text: str) -> dict[str, list]:
    """Return the metric -> its samples, of a valid file."""
    return {family.name: family.samples for family in text_string_to_metric_families(text)}


def test_the_file_is_valid_and_each_metric_has_help_and_unit(folder):
    text = render_metrics("study", {"slurm": folder})
    families = list(text_string_to_metric_families(text))
    for family in families:
        assert family.type == "gauge"
        assert family.documentation.endswith(".")
        assert family.name.endswith("_info") or family.name.endswith(f"_{family.unit}"), "the unit ends the name"
        assert not family.name.endswith("_total"), "a count of a study can fall"
        for sample in family.samples:
            assert sample.timestamp is None, "the node exporter refuses time stamps"
            assert sample.labels.items() >= {("study", "study"), ("trace", "slurm")}
    older = {family.name: family.samples for family in parse_older_text(text)}
    assert {name: len(samples) for name, samples in older.items()} == {
        family.name: len(family.samples) for family in families
    }


def test_intervals_and_observations_are_metrics_of_their_own(folder):
    samples = read_samples(render_metrics("study", {"slurm": folder}))
    value = {name: sample[0].value for name, sample in samples.items()}
    expected = {"ratio": 0.3, "low_ratio": 0.2, "high_ratio": 0.4, "observations": 100}
    assert {end: value[f"ttf_failed_jobs_{end}"] for end in expected} == expected, "the clustered interval"
    expected = {"failures": 12.5, "low_failures": 5, "high_failures": 21, "observations": 8}
    assert {end: value[f"ttf_next_week_job_{end}"] for end in expected} == expected
    assert value["ttf_as_of_timestamp_seconds"] == 1_740_873_600
    assert value["ttf_node_failures_high_per_1000_node_days"] == 3.5, "without a failure there is an upper bound"
    assert "ttf_node_failures_per_1000_node_days" not in value
    assert samples["ttf_quality_grade_info"][0].labels["value"] == "B"
    groups = samples["ttf_group_failed_jobs_ratio"]
    assert [(sample.labels["by"], sample.labels["group"]) for sample in groups] == [("gpu_type", "a100")]
    assert value["ttf_group_failed_jobs_low_ratio"] == 0.1
    assert value["ttf_group_availability_ratio"] == 0.99
    assert "ttf_suspect_node_failures_ratio" not in samples


def test_names_cannot_break_the_file_and_stay_different(folder):
    samples = read_samples(render_metrics("study", {"slurm": folder}))["ttf_drain_node_outages_ratio"]
    assert [sample.value for sample in samples] == [2.5, 3.5, 4.5, 5.5]
    names = [sample.labels["node"] for sample in samples]
    assert len({*names}) == len(names)
    assert all(name.isprintable() for name in names)


SUBJECTS = [Subject("slurm", NUMBERS), Subject("old", {})]
SHARE = "outcomes.failure_share"


def expressions(*rules: Rule) -> list[str]:
    text, _ = render_alert_rules("study", rules, SUBJECTS)
    return [alert["expr"] for alert in yaml.safe_load(text)["groups"][0]["rules"]]


def test_alerts_compare_the_interval_as_make_check_does():
    ratio, low, high = (f'ttf_failed_jobs{end}_ratio{{study="study"}}' for end in ("", "_low", "_high"))
    assert expressions(Rule(SHARE, "above", 0.25)) == [f"({low} or {ratio}) > 0.25"]
    assert expressions(Rule(SHARE, "below", 0.25)) == [f"({high} or ({ratio} unless {low})) < 0.25"]
    assert expressions(Rule(SHARE, "above", 0.25, by="estimate")) == [f"{ratio} > 0.25"]
    grade = 'ttf_quality_grade_info{study="study",'
    assert expressions(Rule("quality.grade", "is", "D"), Rule("quality.grade", "is_not", 'B"', trace="slurm")) == [
        f'{grade}value="D"}} == 1',
        f'{grade}trace="slurm",value!="B\\""}} == 1',
    ]
    absent = 'absent(ttf_failed_jobs_ratio{study="study",trace="slurm"})'
    rule = Rule(SHARE, "above", 0.25, by="estimate", if_missing="fail", trace="slurm")
    assert expressions(rule)[0].endswith(f" > 0.25) or {absent}")


def test_a_number_that_the_study_lacks_has_no_alert_unless_the_rule_fails_then():
    text, skipped = render_alert_rules("study", [Rule("afr.afr", "above", 3)], SUBJECTS)
    assert (yaml.safe_load(text)["groups"][0]["rules"], skipped) == ([], ["afr.afr"])
    assert expressions(Rule("afr.afr", "above", 3, if_missing="fail")) == ["vector(1)"]


def test_words_of_a_rule_are_no_template():
    text, _ = render_alert_rules("study", [Rule(SHARE, "above", 0.25, say="{{ query }}")], SUBJECTS)
    (alert,) = yaml.safe_load(text)["groups"][0]["rules"]
    assert alert["annotations"]["summary"] == (
        '{{ $labels.trace }}: outcomes.failure_share above 25.0%. {{ "{{" }} query }}'
    )


def is_kept(document, decoded) -> bool:
    if isinstance(document, dict):
        return all(key in decoded and is_kept(value, decoded[key]) for key, value in document.items())
    if isinstance(document, list):
        return len(document) == len(decoded) and all(map(is_kept, document, decoded))
    return document == decoded


def test_the_dashboard_follows_the_types_that_grafana_generates_from_its_schema():
    register_default_plugins()
    assert is_kept(DASHBOARD, json.loads(json.dumps(Dashboard.from_json(DASHBOARD), cls=JSONEncoder)))


def test_the_dashboard_queries_metrics_that_exist():
    queried = re.findall(r"ttf_\w+", json.dumps([panel["targets"] for panel in DASHBOARD["panels"]]))
    unit_by_key = {"ettr.mttf_s": "s", "sizes.rate.failures_per_1000_node_days": "per 1000 node-days"}
    unit_by_key |= {f"forecast.{event}.expected": "failures" for event in ("failed_jobs", "infra_failures")}
    units = [(gauge.name, unit_by_key.get(gauge.key, "share")) for gauge in GAUGES]
    units += [(gauge.name, TABLES[gauge.table].columns[gauge.column].unit) for gauge in ROW_GAUGES]
    names = {metric_name(name, unit, bound) for name, unit in units for bound in ("", "low", "high")}
    names |= {f"ttf_{name}_observations" for name, _ in units} | {"ttf_as_of_timestamp_seconds"}
    assert {*queried} <= names
    assert len({*queried}) > 25
