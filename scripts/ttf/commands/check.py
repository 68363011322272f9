"""`ttf check`: name the numbers of a finished study that cross thresholds or changed since earlier results.

Exit status 0: no rule is crossed; 1: at least one is; 2: the rules or the results cannot be used.
"""

import json
from pathlib import Path

from ttf.commands.error_ending import with_error_ending
from ttf.engine.words import plural
from ttf.page.checks.changed_numbers import Results, describe_causes, describe_earlier_value, find_moves, report_moves
from ttf.page.checks.thresholds import CROSSED, UNTOLD, evaluate
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.threshold_file import load_rules
from ttf.study.finished import find_results_folder, find_section, read_results, read_subject
from ttf.study.studies import choose_study


@with_error_ending(2)
def check(study: str, rules: str, against: str, is_json: bool = False) -> int:
    """Print the crossed rules of a file, or what changed against a folder of results; return the exit status."""
    if not (rules or against):
        raise ConfigError("what? ttf check --rules config/thresholds.yaml, or ttf check --against folder")
    name = choose_study(study)
    current = read_results(Path("results"), name, is_verified=True)
    previous = read_results(find_results_folder(Path(against)), name) if against else None
    if previous and not rules:
        lines, code = [*report_moves(previous, current)], 0
    else:
        lines, code = _check_rules(Path(rules), current, previous)
    print(json.dumps({"lines": lines}) if is_json else "\n".join(lines))
    return code


def _check_rules(file: Path, current: Results, previous: Results | None) -> tuple[list[str], int]:
    """Return a line for each rule that is crossed or undecided, and totals; and the exit code."""
    subjects = [read_subject(name, current) for name in current.metrics]
    rules = load_rules(file, subjects)
    changes = {(move.subject, move.key): move for move in find_moves(previous, current)} if previous else {}
    lines, crossed = [], 0
    for rule in rules:
        checked = [subject for subject in subjects if rule.trace in (None, subject.name)]
        answers = {subject.name: evaluate(rule, subject) for subject in checked}
        crossed += any(verdict.state == CROSSED for verdict in answers.values())
        for name, verdict in answers.items():
            if verdict.state == CROSSED or (verdict.state == UNTOLD and rule.if_missing == "tell"):
                change = changes.get((name, rule.number))
                reason = f" It {describe_earlier_value(change, previous)}." if change and previous else ""
                section = find_section(rule.number, name, current) if verdict.state == CROSSED else ""
                lines.append(f"{verdict.sentence}{reason}{f' See {section}' * bool(section)}")
    lines.append(
        f"{plural(len(rules), 'rule')} compared with the study: {f'{crossed:,}' if crossed else 'none'} crossed."
    )
    if previous and changes:
        lines.append(f"{plural(len(changes), 'number')} moved {describe_causes(previous, current)}.")
    return lines, int(crossed > 0)
