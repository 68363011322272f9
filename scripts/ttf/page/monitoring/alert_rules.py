"""Alert rules of Prometheus that fire when the same rules fire in `ttf check`."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import yaml

from ttf.page.checks.thresholds import Rule, Subject, format_value, to_single_line
from ttf.page.monitoring.open_metrics import PREFIX, format_labels, format_truth, metric_name, name_number

FILE = "monitoring/alert_rules.yaml"


def render_alert_rules(study: str, rules: Sequence[Rule], traces: Sequence[Subject]) -> tuple[str, list[str]]:
    """Return a rule file of Prometheus, and the keys of the numbers whose rules gave no alert."""
    alerts = [_make_alert(study, f"{number}", rule, traces) for number, rule in enumerate(rules, start=1)]
    groups = [{"name": f"time to failure: {study}", "rules": [alert for alert in alerts if alert]}]
    text = yaml.safe_dump({"groups": groups}, sort_keys=False, allow_unicode=True, width=120)
    return text, [rule.number for rule, alert in zip(rules, alerts, strict=True) if not alert]


def _make_alert(study: str, position: str, rule: Rule, traces: Sequence[Subject]) -> dict[str, Any] | None:
    """Return the alert of a rule; None if the study lacks the number and the rule accepts that."""
    subjects = [trace for trace in traces if rule.trace in (None, trace.name)]
    number = next((subject.metrics[rule.number] for subject in subjects if rule.number in subject.metrics), None)
    name, subject = to_single_line(rule.number), "{{ $labels.trace }}" if number else f"study {study}"
    if number is not None:
        expression = _make_expression(study, rule, number["unit"], [subject.name for subject in subjects])
        missing = " or not available" if rule.if_missing == "fail" else ""
        sentence = f"{name} {rule.kind.replace('_', ' ')} {format_value(rule.limit, number['unit'])}{missing}."
    elif rule.if_missing == "fail":
        expression, sentence = "vector(1)", f"{name} is not available."
    else:
        return None
    # Prometheus would look for a template in double braces.
    sentence, name = (text.replace("{{", '{{ "{{" }}') for text in (f"{sentence} {rule.say}".strip(), name))
    return {
        "alert": "".join(part.capitalize() for part in name_number(f"{rule.number}_{rule.kind}").split("_")[1:]),
        "expr": expression,
        "labels": {"severity": "warning", "number": name, "rule": position},
        "annotations": {"summary": f"{subject}: {sentence}"},
    }


def _make_expression(study: str, rule: Rule, unit: str, traces: Sequence[str]) -> str:
    """Return the condition in PromQL, over the interval where there is one, as `ttf check` decides."""
    selectors: list[Mapping[str, str]] = [{"study": study, "trace": trace} for trace in traces]
    labels = format_labels(selectors[0] if rule.trace else {"study": study})
    name = name_number(rule.number)
    if rule.kind in ("is", "is_not"):
        metric, equals = f"{PREFIX}{name}_info", "=" if rule.kind == "is" else "!="
        value = format_labels({"value": format_truth(cast(str | bool, rule.limit))})
        expression = f"{metric}{{{labels},{value.replace('=', equals, 1)}}} == 1"
    else:
        metric = metric_name(name, unit)
        low, high = (f"{metric_name(name, unit, bound)}{{{labels}}}" for bound in ("low", "high"))
        estimate, sign = f"{metric}{{{labels}}}", ">" if rule.kind == "above" else "<"
        if rule.by == "interval":
            # An interval without an upper bound reaches beyond every limit.
            estimate = f"({low} or {estimate})" if sign == ">" else f"({high} or ({estimate} unless {low}))"
        expression = f"{estimate} {sign} {rule.limit!r}"
    if rule.if_missing == "fail":
        absent = (f"absent({metric}{{{format_labels(selector)}}})" for selector in selectors)
        expression = " or ".join([f"({expression})", *absent])
    return expression
